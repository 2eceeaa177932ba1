import type { Definitions, ObservedKey } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { LongText } from '../entity/value.tsx'
import { Button } from '../ui/button.tsx'
import { EmptyState, Loading, Notice, Problem } from '../ui/page.tsx'
import { Table } from '../ui/table.tsx'
import { DeclareDialog } from './declare-dialog.tsx'
import { TypeCounts } from './fit-result.tsx'
import { messages } from './messages.ts'
import { OwnerList } from './owner-list.tsx'
import { observedQuery } from './queries.ts'
import styles from './schema.module.css'

const route = getRouteApi('/shell/schema')

/** The keys that values were written under without a declaration. */
export function ObservedTab({ definitions }: { definitions: Definitions }) {
  const { owner: asked = 'people' } = route.useSearch()
  const owner = definitions.stacks.some(({ key }) => key === asked) ? asked : 'people'
  return (
    <div className={styles.columns}>
      <div className={styles.side}>
        <OwnerList definitions={definitions} tab="observed" selected={owner} />
      </div>
      <ObservedKeys key={owner} owner={owner} />
    </div>
  )
}

function ObservedKeys({ owner }: { owner: string }) {
  const texts = useMessages(messages)
  const [declared, setDeclared] = useState<ObservedKey>()
  const { data, error, refetch, isFetching } = useQuery(observedQuery(owner))
  if (!data) return error ? <Problem error={error} onRetry={() => refetch()} /> : <Loading />
  return (
    <div className={styles.stack}>
      <div className={styles.actions}>
        <p className="small">{texts.observedHelp}</p>
        <Button onPress={() => refetch()} isPending={isFetching}>
          {texts.readAgain}
        </Button>
      </div>
      {data.truncated && <Notice kind="caution" title={texts.observedTruncated} />}
      {data.items.length === 0 ? (
        <EmptyState title={texts.noObserved}>
          <p>{texts.noObservedAdvice}</p>
        </EmptyState>
      ) : (
        <ObservedTable items={data.items} onDeclare={setDeclared} />
      )}
      {declared && <DeclareDialog owner={owner} observed={declared} onClose={() => setDeclared(undefined)} />}
    </div>
  )
}

function ObservedTable({ items, onDeclare }: { items: readonly ObservedKey[]; onDeclare: (key: ObservedKey) => void }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const mayWrite = useScope('schema:write')
  const headers = [
    texts.key,
    texts.values,
    texts.type,
    texts.firstSeen,
    texts.lastSeen,
    ...(mayWrite ? [texts.action] : []),
  ]
  return (
    <Table label={texts.observedKeys} headers={headers}>
      {items.map(item => (
        <tr key={item.key}>
          <th scope="row">
            <LongText text={item.key} isCode />
          </th>
          <td>{formats.number(item.count)}</td>
          <td>
            <TypeCounts types={item.types} />
          </td>
          <td>{formats.dateTime(item.first_seen)}</td>
          <td>{formats.dateTime(item.last_seen)}</td>
          {mayWrite && (
            <td>
              {item.declarable ? (
                <Button onPress={() => onDeclare(item)} aria-label={texts.declareKey(item.key)}>
                  {texts.declare}
                </Button>
              ) : (
                <span className="small">{texts.notDeclarable}</span>
              )}
            </td>
          )}
        </tr>
      ))}
    </Table>
  )
}
