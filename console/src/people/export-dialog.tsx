import type { Definitions } from '@kith/client'
import { useState } from 'react'
import { useMessages } from '../app/language.tsx'
import { queryClient } from '../app/query-client.ts'
import { ExportPanel, SpreadsheetChoice, useExport } from '../transfer/export-panel.tsx'
import { createExport, type ExportedList } from '../transfer/export-setup.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Select } from '../ui/field.tsx'
import { Loading } from '../ui/page.tsx'
import { messages } from './messages.ts'
import styles from './people.module.css'
import { countQuery, type PeopleQuery, readPeople } from './people-query.ts'
import { useDefinitions } from './use-definitions.ts'

type ExportDialogProps = { query: PeopleQuery; columns: readonly string[]; onClose(): void }

const noDefinitions: Definitions = { stacks: [], attributes: [], consent_types: [] }

/** Exports the people of the list as a CSV file. */
export default function ExportDialog(props: ExportDialogProps) {
  const texts = useMessages(messages)
  const { data = noDefinitions, isLoading } = useDefinitions()
  if (!isLoading) return <ExportForm {...props} definitions={data} />
  return (
    <Dialog title={texts.exportTitle} isOpen onClose={props.onClose}>
      <Loading />
    </Dialog>
  )
}

function ExportForm({ query, columns, definitions, onClose }: ExportDialogProps & { definitions: Definitions }) {
  const texts = useMessages(messages)
  const [choice, setChoice] = useState<'shown' | 'all'>('shown')
  const [isSafeForSpreadsheets, setSafe] = useState(true)
  const exporting = useExport(() =>
    createExport(
      {
        owner: 'people',
        format: 'csv',
        segment: null,
        isSafeForSpreadsheets,
        ...(choice === 'shown' && { columns: exportedColumns(columns) }),
        list: {
          count: async () => (query.text === '' ? queryClient.fetchQuery(countQuery(query.filter)) : null),
          readNext: pagesOf(query),
        },
      },
      definitions,
    ),
  )
  return (
    <Dialog title={texts.exportTitle} isOpen onClose={() => !exporting.isActive && onClose()} hasDraft={false}>
      <p className={styles.muted!}>{texts.exportScope}</p>
      <Select<'shown' | 'all'>
        label={texts.exportColumns}
        options={[
          { value: 'shown', label: texts.exportShown },
          { value: 'all', label: texts.exportAll },
        ]}
        value={choice}
        onChange={setChoice}
        isDisabled={exporting.isActive}
      />
      <SpreadsheetChoice isSafe={isSafeForSpreadsheets} onChange={setSafe} />
      <ExportPanel {...exporting}>
        <Button onPress={onClose}>{texts.close}</Button>
      </ExportPanel>
    </Dialog>
  )
}

/** Reads the pages of a list one after the other, with whole people. */
function pagesOf(query: PeopleQuery): ExportedList['readNext'] {
  let next: string | null | undefined
  return async options => {
    if (next === null) return null
    const page = await readPeople({ ...query, fields: undefined }, { ...options, after: next })
    next = page.next
    return page.items
  }
}

/** The columns of the table, after the identifier and the name. A number has its prefix before it. */
function exportedColumns(shown: readonly string[]): string[] {
  const withPrefixes = shown.flatMap(name => (name === 'mobile_number' ? ['mobile_prefix', name] : [name]))
  return [...new Set(['external_id', 'first_name', 'last_name', ...withPrefixes])]
}
