import type { Change } from '@kith/client'
import { isKithError } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useWrite } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { entitiesOf } from '../entity/entities.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { attributesOf, useDefinitions } from '../entity/schema.ts'
import { Value } from '../entity/value.tsx'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { Loading, Notice, Problem } from '../ui/page.tsx'
import { ColumnTable } from '../ui/table.tsx'
import { bodyOf, type Difference, type Restoration, valuesToRestore, withoutChange } from './differences.ts'
import { nameOf } from './history-changes.tsx'
import { messages } from './messages.ts'

type SetBackDialogProps = {
  owner: string
  id: string
  onClose: () => void
  onSaved: () => void
} & (
  | { /** The change to undo. */ change: Change; version?: never }
  | { /** The version to restore. */ version: number; change?: never }
)

type Plan = Restoration & { version: number }

/** Shows the values that an undone change or a restored version sets, and sets them. */
export function SetBackDialog({ owner, id, change, version, onClose, onSaved }: SetBackDialogProps) {
  const texts = useMessages(messages)
  const [hasConflict, setConflict] = useState(false)
  const entities = entitiesOf(owner)
  const { data, error, refetch, isFetching } = useQuery({
    queryKey: ['history', owner, id, 'set-back', change?.sequence ?? version],
    queryFn: async ({ signal }): Promise<Plan> => {
      const now = await entities.get({ id }, { signal })
      const then = change ? withoutChange(now, change) : await entities.get({ id }, { version: version!, signal })
      return { version: now.version, ...valuesToRestore(now, then) }
    },
    gcTime: 0,
  })
  const save = useWrite(
    ({ version, settable }: Plan) =>
      // A missing target is refused. Otherwise it would come back as a placeholder.
      entities.patch({ id }, bodyOf(settable), { ifMatch: version, references: 'strict', representation: true }),
    {
      onSuccess: onSaved,
      onError: async error => {
        if (!isKithError(error) || error.status !== 412) return
        await refetch()
        setConflict(true)
        save.reset()
      },
    },
  )
  const isEmpty = data?.settable.length === 0
  const title = change ? texts.undo(change.version!) : texts.restoreTitle(version!)
  return (
    <Dialog title={title} onClose={onClose} size="wide">
      {!data && (error ? <Problem error={error} onRetry={() => refetch()} /> : <Loading />)}
      {hasConflict && !save.isPending && <Notice kind="caution" title={texts.changedMeanwhile} />}
      {data && (isEmpty ? <p>{texts.nothingToSet}</p> : <Preview owner={owner} differences={data.settable} />)}
      {data && data.fixed.length > 0 && (
        <Notice kind="caution" title={texts.cannotBeSet}>
          <p>{data.fixed.map(({ key }) => key).join(', ')}</p>
        </Notice>
      )}
      <p className="muted">{texts.answersStay}</p>
      {save.error && <Problem error={save.error} />}
      <Actions>
        <Button onPress={onClose} autoFocus>
          {isEmpty ? texts.close : texts.cancel}
        </Button>
        {data && !isEmpty && (
          <Button look="primary" onPress={() => save.mutate(data)} isPending={save.isPending || isFetching}>
            {save.isPending ? `${texts.saving}…` : texts.apply}
          </Button>
        )}
      </Actions>
    </Dialog>
  )
}

function Preview({ owner, differences }: { owner: string; differences: readonly Difference[] }) {
  const texts = useMessages(messages)
  const entityTexts = useMessages(entityMessages)
  const attributes = attributesOf(useDefinitions().definitions, owner)
  return (
    <>
      <p>{texts.willBeSet}</p>
      <ColumnTable
        label={texts.willBeSet}
        rows={differences}
        rowKey={({ group, key }) => `${group} ${key}`}
        columns={[
          [texts.value, difference => nameOf(difference, entityTexts, attributes), 'name'],
          [texts.now, ({ before }) => <Value value={before} />],
          [texts.willBe, ({ after }) => <Value value={after} />],
        ]}
      />
    </>
  )
}
