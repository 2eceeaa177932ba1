import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { lazy, Suspense, useState } from 'react'
import { isWhole, mayUse } from '../app/field-rights.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { useDefinitions } from '../entity/schema.ts'
import { countQuery, type ListQuery } from '../list/queries.ts'
import { Button } from '../ui/button.tsx'
import styles from './bulk.module.css'
import type { BulkAction, BulkTarget } from './bulk-dialog.tsx'
import { messages } from './messages.ts'
import type { useSelection } from './selection.ts'

const BulkDialog = lazy(() => import('./bulk-dialog.tsx'))

type SelectionBarProps = { query: ListQuery; chosen: ReturnType<typeof useSelection> }

/** Shows the number of chosen rows, and the actions on them. */
export function SelectionBar({ query, chosen }: SelectionBarProps) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const mayErase = useScope('people:erase')
  const { definitions } = useDefinitions()
  const { owner, text, filter } = query
  const [action, setAction] = useState<BulkAction>()
  const { data: counted } = useQuery({ ...countQuery(owner, filter), enabled: chosen.count > 0 && text === '' })
  if (chosen.count === 0 && !action) return null
  const matching = counted?.count
  const { ids, isAll } = chosen.selection
  const count = isAll ? (matching ?? chosen.count) : ids.size
  const isOfPeople = owner === 'people'
  const isEvent = definitions.stacks.some(({ key, kind }) => key === owner && kind === 'event')
  const mayDelete = isWhole(owner)
  const actions: BulkAction[] = [
    ...(isEvent ? [] : ['set' as const]),
    ...(isOfPeople && definitions.consent_types.length > 0 && mayUse('write', owner, 'consents')
      ? ['consent' as const]
      : []),
    ...(mayDelete ? ['delete' as const] : []),
    ...(isOfPeople && mayErase && mayDelete ? ['erase' as const] : []),
  ]
  const target: BulkTarget = isAll ? { owner, filter: { ...filter } } : { owner, ids: [...ids] }
  return (
    <section className={styles.bar} aria-label={texts.actions}>
      <span role="status">{texts.chosen(count, formats.number(count))}</span>
      {!isAll && matching !== undefined && matching > ids.size && (
        <Button look="quiet" onPress={chosen.chooseAll}>
          {texts.chooseAll(formats.number(matching))}
        </Button>
      )}
      <Button look="quiet" onPress={chosen.clear}>
        {texts.clear}
      </Button>
      <span className={styles.actions}>
        {actions.map(each => (
          <Button key={each} onPress={() => setAction(each)}>
            {texts.action[each]}…
          </Button>
        ))}
        <Link to="/jobs">{texts.earlier}</Link>
      </span>
      <Suspense>
        {action && (
          <BulkDialog
            action={action}
            target={target}
            onClose={hasBegun => {
              setAction(undefined)
              if (hasBegun) chosen.clear()
            }}
          />
        )}
      </Suspense>
    </section>
  )
}
