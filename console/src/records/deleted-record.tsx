import { isKithError } from '@kith/client'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { client } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { useSchema } from '../entity/schema.ts'
import { History } from '../history/history.tsx'
import { Button } from '../ui/button.tsx'
import { Notice, Problem } from '../ui/notice.tsx'
import { Loading, Page, Section } from '../ui/page.tsx'
import { messages } from './messages.ts'
import { MissingRecord } from './missing-record.tsx'
import { RecordPath } from './record-path.tsx'

/** A record that is no longer there: who deleted it, and how it comes back. */
export function DeletedRecord({ stackKey, recordId }: { stackKey: string; recordId: string }) {
  const texts = useMessages(messages)
  const mayReadChanges = useScope('changes:read')
  const { data, error, refetch } = useQuery({
    queryKey: ['records', stackKey, 'last-change', recordId],
    queryFn: ({ signal }) => client.stack(stackKey).history({ id: recordId }, { size: 1, signal }).page(),
    enabled: mayReadChanges,
  })
  if (!mayReadChanges || isKithError(error, 'not_found')) return <MissingRecord stackKey={stackKey} name={recordId} />
  if (!data)
    return <Page title={recordId}>{error ? <Problem error={error} onRetry={() => refetch()} /> : <Loading />}</Page>
  const [last] = data.items
  if (!last) return <MissingRecord stackKey={stackKey} name={recordId} />
  return (
    <Page title={last.external_id ?? recordId} subtitle={<RecordPath stackKey={stackKey} recordId={recordId} />}>
      <Deletion
        stackKey={stackKey}
        recordId={recordId}
        actor={last.actor}
        at={last.at}
        isErased={last.operation === 'erase'}
      />
      <Section title={texts.timeline}>
        <History owner={stackKey} id={recordId} canUndo={false} />
      </Section>
    </Page>
  )
}

type DeletionProps = { stackKey: string; recordId: string; actor: string; at: string; isErased: boolean }

function Deletion({ stackKey, recordId, actor, at, isErased }: DeletionProps) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const mayWrite = useScope('records:write')
  const queryClient = useQueryClient()
  const isKnown = useSchema().stacks.some(({ key }) => key === stackKey)
  const restore = useMutation({
    mutationFn: () => client.stack(stackKey).restore({ id: recordId }),
    onSuccess: () =>
      Promise.all([
        queryClient.invalidateQueries({ queryKey: ['records', stackKey] }),
        queryClient.invalidateQueries({ queryKey: ['history', stackKey, recordId] }),
      ]),
  })
  const sentence = (isErased ? texts.erasedBy : texts.deletedBy)(actor, formats.exactTime(at))
  return (
    <>
      <Notice kind="caution" title={sentence}>
        {mayWrite && isKnown && !isErased && (
          <div>
            <Button onPress={() => restore.mutate()} isPending={restore.isPending}>
              {texts.restore}
            </Button>
          </div>
        )}
      </Notice>
      {restore.error && <Problem error={restore.error} />}
    </>
  )
}
