import { useInfiniteQuery, useMutation } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { FieldGroup, TextField } from '../ui/field.tsx'
import { EmptyState, Page, Problem, Section } from '../ui/page.tsx'
import { PagedList } from '../ui/paged-list.tsx'
import { saveBlob } from '../ui/save-blob.ts'
import { Select } from '../ui/select.tsx'
import { EntryTable } from './entry-table.tsx'
import { messages } from './messages.ts'
import { accessLogQuery, filterOf } from './queries.ts'
import { type AccessLogSearch, validateAccessLogSearch } from './search.ts'

/** The page of the access log: the reads and writes of people and records, and the security events. */
export function AccessLogPage() {
  const texts = useMessages(messages)
  const navigate = useNavigate()
  const search = useSearch({ strict: false }) as AccessLogSearch
  const log = useInfiniteQuery(accessLogQuery(search))
  const saving = useMutation({ mutationFn: () => save(search) })
  const change = (changed: AccessLogSearch) =>
    navigate({ to: '/access-log', search: validateAccessLogSearch({ ...search, ...changed }), replace: true })
  return (
    <Page
      title={texts.title}
      subtitle={texts.subtitle}
      actions={
        <Button onPress={() => saving.mutate()} isPending={saving.isPending}>
          {texts.export}
        </Button>
      }
    >
      {saving.error && <Problem error={saving.error} />}
      <Section title={texts.title}>
        <Filters search={search} onChange={change} />
        <PagedList query={log} none={<EmptyState title={texts.none}>{texts.noneAdvice}</EmptyState>} more={texts.more}>
          {entries => <EntryTable label={texts.title} entries={entries} />}
        </PagedList>
      </Section>
    </Page>
  )
}

type FiltersProps = { search: AccessLogSearch; onChange(changed: AccessLogSearch): void }

function Filters({ search: { kind, subject = '', entity = '', from = '', to = '' }, onChange }: FiltersProps) {
  const texts = useMessages(messages)
  return (
    <FieldGroup look="grid">
      <Select<string>
        label={texts.kind}
        options={{ '': texts.all, ...texts.kinds }}
        value={kind ?? ''}
        onChange={chosen => onChange({ kind: chosen as NonNullable<AccessLogSearch['kind']> })}
      />
      <TextField label={texts.who} value={subject} onChange={subject => onChange({ subject })} />
      <TextField
        label={texts.entity}
        help={texts.entityHelp}
        value={entity}
        onChange={entity => onChange({ entity: entity.trim() })}
      />
      <TextField label={texts.from} type="date" value={from} onChange={from => onChange({ from })} />
      <TextField label={texts.to} type="date" value={to} onChange={to => onChange({ to })} />
    </FieldGroup>
  )
}

/** Saves all entries that the filter lists, one per line. */
async function save(search: AccessLogSearch): Promise<void> {
  const lines: string[] = []
  for await (const entry of client.access.log({ ...filterOf(search), size: 500 }))
    lines.push(`${JSON.stringify(entry)}\n`)
  saveBlob(new Blob(lines, { type: 'application/x-ndjson' }), 'access-log.ndjson')
}
