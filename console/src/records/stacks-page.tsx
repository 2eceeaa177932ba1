import type { Stack } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { useDefinitions } from '../entity/schema.ts'
import { countQuery } from '../list/queries.ts'
import { LinkButton } from '../ui/button.tsx'
import { Badge, EmptyState, Loading, Page, Problem } from '../ui/page.tsx'
import { ColumnTable, numberCell } from '../ui/table.tsx'
import { messages } from './messages.ts'

/** The stacks, with the number of their records. */
export function StacksPage() {
  const texts = useMessages(messages)
  const mayReadSchema = useScope('schema:read')
  return <Page title={texts.records}>{mayReadSchema ? <Stacks /> : <p className="small">{texts.schemaHidden}</p>}</Page>
}

function Stacks() {
  const texts = useMessages(messages)
  const mayWriteSchema = useScope('schema:write')
  const { definitions, hasDefinitions, error, refetch } = useDefinitions()
  if (!hasDefinitions) return error ? <Problem error={error} onRetry={() => refetch()} /> : <Loading />
  const stacks = definitions.stacks.toSorted((one, other) => one.name.localeCompare(other.name))
  if (stacks.length === 0)
    return (
      <EmptyState title={texts.noStacks}>
        <p>{texts.noStacksAdvice}</p>
        {mayWriteSchema && (
          <LinkButton to="/schema" look="primary">
            {texts.openSchema}
          </LinkButton>
        )}
      </EmptyState>
    )
  return (
    <ColumnTable
      label={texts.stacks}
      rows={stacks}
      rowKey={({ key }) => key}
      columns={[
        [
          texts.name,
          ({ key, name }) => (
            <Link to="/records/$stackKey" params={{ stackKey: key }}>
              <bdi>{name}</bdi>
            </Link>
          ),
          'name',
        ],
        [texts.key, ({ key }) => <code>{key}</code>],
        [texts.kind, ({ kind }) => <Badge>{texts.kinds[kind]}</Badge>],
        [texts.recordCount, stack => <RecordCount stack={stack} />],
      ]}
    />
  )
}

function RecordCount({ stack }: { stack: Stack }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { data, error } = useQuery(countQuery(stack.key))
  if (error) return <span className="small">{texts.countFailed}</span>
  return <span className={numberCell}>{data === undefined ? '…' : formats.number(data.count)}</span>
}
