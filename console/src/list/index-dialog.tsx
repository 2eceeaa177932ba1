import type { Attribute } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { queryClient } from '../app/query-client.ts'
import { useScope } from '../app/session.tsx'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { Problem } from '../ui/page.tsx'
import { messages } from './messages.ts'

type IndexDialogProps = { attribute: Attribute; onClose(): void; onIndexed(): void }

/** Explains why the list cannot be sorted by an attribute, and offers to index it. */
export default function IndexDialog({ attribute, onClose, onIndexed }: IndexDialogProps) {
  const texts = useMessages(messages)
  const { percent } = useFormats()
  const canIndex = useScope('schema:write')
  const { mutate, isPending, isSuccess, error } = useWrite(() =>
    client.schema.attributes.patch(attribute.id, { indexed: true }),
  )
  const { data } = useQuery({
    queryKey: ['schema', 'index', attribute.id],
    queryFn: ({ signal }) => client.schema.attributes.get(attribute.id, { signal }),
    enabled: isSuccess,
    refetchInterval: 1_000,
  })
  const index = data?.index_state
  const isReady = index?.state === 'ready'
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list is sorted once, when the index is ready
  useEffect(() => {
    if (!isReady) return
    queryClient.invalidateQueries({ queryKey: ['schema'] })
    onIndexed()
  }, [isReady])
  return (
    <Dialog title={texts.notIndexedTitle(attribute.name)} onClose={onClose}>
      <p>{texts.notIndexed}</p>
      {!canIndex && <p>{texts.notIndexedAdvice}</p>}
      {error && <Problem error={error} />}
      {isSuccess && (
        <p role="status">
          {texts.indexing}
          {index && index.total > 0 && ` (${percent(Math.min(1, index.indexed / index.total))})`}…
        </p>
      )}
      <Actions>
        <Button onPress={onClose}>{texts.close}</Button>
        {canIndex && (
          <Button look="primary" isPending={isPending || isSuccess} onPress={() => mutate()}>
            {texts.indexIt}
          </Button>
        )}
      </Actions>
    </Dialog>
  )
}
