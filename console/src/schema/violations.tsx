import type { Attribute, Violation } from '@kith/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { client, pagedQuery } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { EntityLink } from '../entity/entity-link.tsx'
import { Badge } from '../ui/page.tsx'
import { PagedList } from '../ui/paged-list.tsx'
import { messages } from './messages.ts'
import { ruleLabels } from './rule-labels.ts'
import styles from './schema.module.css'

/** The people or records whose stored values break the rules of an attribute. */
export function Violations({ attribute: { id, owner, updated_at } }: { attribute: Attribute }) {
  const texts = useMessages(messages)
  const query = useInfiniteQuery(
    pagedQuery(['schema', 'violations', id, updated_at], at => client.schema.attributes.violations(id, at).page()),
  )
  return (
    <PagedList query={query} none={<p className="small">{texts.noViolations}</p>} more={texts.searchOn}>
      {violations => (
        <>
          <p className="small">{texts.violationsMeaning}</p>
          <ViolationList label={texts.violations} owner={owner} violations={violations} />
        </>
      )}
    </PagedList>
  )
}

type ViolationListProps = { label: string; owner: string; violations: readonly Violation[] }

/** People or records, with the rules that each breaks. */
export function ViolationList({ label, owner, violations }: ViolationListProps) {
  const texts = useMessages(messages)
  const labels = useMessages(ruleLabels)
  return (
    <ul className={styles.found} aria-label={label}>
      {violations.map(({ id, record_id, external_id, rules }) => (
        <li key={id ?? record_id}>
          <EntityLink owner={owner} id={id ?? record_id ?? ''} externalId={external_id} />
          {rules.map(rule => (
            <Badge key={rule} kind="caution">
              {rule === 'type' ? texts.type : labels[rule].name}
            </Badge>
          ))}
        </li>
      ))}
    </ul>
  )
}
