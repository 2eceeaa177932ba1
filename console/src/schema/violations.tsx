import type { Attribute, Violation } from '@kith/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { client, pagedQuery } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { EntityLink } from '../entity/entity-link.tsx'
import { Badge, Loading, Problem } from '../ui/page.tsx'
import { MoreButton } from '../ui/paged-list.tsx'
import { messages } from './messages.ts'
import { ruleLabels } from './rule-labels.ts'
import styles from './schema.module.css'

/** The people or records whose stored values break the rules of an attribute. */
export function Violations({ attribute }: { attribute: Attribute }) {
  const texts = useMessages(messages)
  const query = useInfiniteQuery(
    pagedQuery(['schema', 'violations', attribute.id, attribute.updated_at], at =>
      client.schema.attributes.violations(attribute.id, at).page(),
    ),
  )
  const { data, error, refetch, hasNextPage } = query
  if (!data) return error ? <Problem error={error} onRetry={() => refetch()} /> : <Loading />
  const found = data.pages.flatMap(({ items }) => items)
  return (
    <>
      {found.length === 0 && !hasNextPage && <p className="small">{texts.noViolations}</p>}
      {found.length > 0 && (
        <>
          <p className="small">{texts.violationsMeaning}</p>
          <ul className={styles.found} aria-label={texts.violations}>
            {found.map(violation => (
              <ViolationItem key={violation.id ?? violation.record_id} owner={attribute.owner} violation={violation} />
            ))}
          </ul>
        </>
      )}
      <MoreButton query={query}>{texts.searchOn}</MoreButton>
    </>
  )
}

export function ViolationItem({ owner, violation }: { owner: string; violation: Violation }) {
  const texts = useMessages(messages)
  const labels = useMessages(ruleLabels)
  return (
    <li>
      <EntityLink owner={owner} id={violation.id ?? violation.record_id ?? ''} externalId={violation.external_id} />
      {violation.rules.map(rule => (
        <Badge key={rule} kind="caution">
          {rule === 'type' ? texts.type : labels[rule].name}
        </Badge>
      ))}
    </li>
  )
}
