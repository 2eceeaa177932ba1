import { useState } from 'react'
import { useMessages } from '../app/language.tsx'
import { queryClient } from '../app/query-client.ts'
import { useDefinitions } from '../entity/schema.ts'
import { ExportPanel, SpreadsheetChoice, useExport } from '../transfer/export-panel.tsx'
import { type ExportedList, ExportRun } from '../transfer/export-run.ts'
import { useSpreadsheetLook } from '../transfer/spreadsheet.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Loading } from '../ui/page.tsx'
import { Select } from '../ui/select.tsx'
import { messages } from './messages.ts'
import { countQuery, type ListQuery, readList } from './queries.ts'

type ExportDialogProps = { query: ListQuery; columns: readonly string[]; onClose(): void }

/** Exports the entities of the list as a CSV file. */
export default function ExportDialog(props: ExportDialogProps) {
  const texts = useMessages(messages)
  const { isLoading } = useDefinitions()
  if (!isLoading) return <ExportForm {...props} />
  return (
    <Dialog title={texts.export} onClose={props.onClose}>
      <Loading />
    </Dialog>
  )
}

function ExportForm({ query, columns, onClose }: ExportDialogProps) {
  const texts = useMessages(messages)
  const { definitions } = useDefinitions()
  const [choice, setChoice] = useState<'shown' | 'all'>('shown')
  const [isForSpreadsheets, setSafe] = useState(true)
  const look = useSpreadsheetLook(query.owner)
  const exporting = useExport(() => {
    const list = {
      count: async () =>
        query.text === '' ? (await queryClient.fetchQuery(countQuery(query.owner, query.filter))).count : null,
      readNext: pagesOf(query),
    }
    const chosen = choice === 'shown' && { columns: exportedColumns(query.owner, columns) }
    const setup = { owner: query.owner, format: 'csv' as const, segment: null, isForSpreadsheets, ...chosen, list }
    return new ExportRun(setup, definitions, look)
  })
  return (
    <Dialog title={texts.export} onClose={() => !exporting.isActive && onClose()} hasDraft={false}>
      <p className="muted">{texts.exportScope}</p>
      <Select<'shown' | 'all'>
        label={texts.columns}
        options={{ shown: texts.exportShown, all: texts.exportAll }}
        value={choice}
        onChange={setChoice}
        isDisabled={exporting.isActive}
      />
      <SpreadsheetChoice isSafe={isForSpreadsheets} onChange={setSafe} />
      <ExportPanel {...exporting}>
        <Button onPress={onClose}>{texts.close}</Button>
      </ExportPanel>
    </Dialog>
  )
}

/** Reads the pages of a list in sequence, with whole entities. */
function pagesOf(query: ListQuery): ExportedList['readNext'] {
  let next: string | null | undefined
  return async options => {
    if (next === null) return null
    const page = await readList({ ...query, fields: undefined }, { ...options, after: next })
    next = page.next
    return page.items
  }
}

/** The columns of the table, after the identifier and the name. The prefix comes before the phone number. */
function exportedColumns(owner: string, shown: readonly string[]): string[] {
  if (owner !== 'people') return [...new Set(['external_id', ...shown])]
  const withPrefixes = shown.flatMap(name => (name === 'mobile_number' ? ['mobile_prefix', name] : [name]))
  return [...new Set(['external_id', 'first_name', 'last_name', ...withPrefixes])]
}
