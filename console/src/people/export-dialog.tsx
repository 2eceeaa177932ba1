import { useMutation, useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { attributePrefix, fixedFieldsOf } from '../filters/field-types.ts'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { Select } from '../ui/field.tsx'
import { Notice, Problem } from '../ui/notice.tsx'
import { saveBlob } from '../ui/save-blob.ts'
import { blobTarget, exportPeople, fileTarget } from './export-csv.ts'
import { messages } from './messages.ts'
import styles from './people.module.css'
import { countQuery, type PeopleQuery } from './people-query.ts'
import { useDefinitions } from './use-definitions.ts'

/** More people than this are written to a file on the disk while they come, where the browser can. */
const maxInMemory = 100_000

type ExportDialogProps = { query: PeopleQuery; columns: readonly string[]; onClose(): void }

/** Exports the people of the list as a CSV file. */
export default function ExportDialog({ query, columns, onClose }: ExportDialogProps) {
  const texts = useMessages(messages)
  const { number } = useFormats()
  const [choice, setChoice] = useState<'shown' | 'all'>('shown')
  const fields = useExportFields(columns)[choice]
  const { data: total } = useQuery({ ...countQuery(query.filter), enabled: query.text === '' })
  const { start, stop, exported, state } = useExport(query, fields, total)
  const isRunning = state.isPending
  const isStopped = state.error instanceof DOMException && state.error.name === 'AbortError'
  return (
    <Dialog title={texts.exportTitle} isOpen onClose={() => !isRunning && onClose()} hasDraft={false}>
      <p className={styles.muted!}>{texts.exportScope}</p>
      <Select<'shown' | 'all'>
        label={texts.exportColumns}
        options={[
          { value: 'shown', label: texts.exportShown },
          { value: 'all', label: texts.exportAll },
        ]}
        value={choice}
        onChange={setChoice}
        isDisabled={isRunning}
      />
      {isRunning && (
        <label className={styles.progress!}>
          {texts.exportProgress}: {number(exported)}
          {total !== undefined && ` / ${number(total)}`}
          <progress {...(total !== undefined && { value: exported, max: Math.max(total, 1) })} />
        </label>
      )}
      {state.isSuccess && <Notice kind="success" title={texts.exportDone(number(exported))} />}
      {isStopped && <Notice title={texts.exportStopped} />}
      {state.error && !isStopped && <Problem error={state.error} />}
      <Actions>
        {isRunning ? (
          <Button look="danger" onPress={stop}>
            {texts.exportStop}
          </Button>
        ) : (
          <Button onPress={onClose}>{texts.close}</Button>
        )}
        <Button look="primary" isPending={isRunning} onPress={start}>
          {texts.exportStart}
        </Button>
      </Actions>
    </Dialog>
  )
}

/** The columns of the file, by choice. The identifier and the name are always there. */
function useExportFields(columns: readonly string[]): Record<'shown' | 'all', string[]> {
  const { data: definitions } = useDefinitions()
  const attributes = (definitions?.attributes ?? []).filter(each => each.owner === 'people' && each.state === 'active')
  const fixed = Object.keys(fixedFieldsOf('people'))
  return {
    shown: [...new Set(['external_id', 'first_name', 'last_name', ...columns])],
    all: [...new Set(['external_id', ...fixed, ...attributes.map(({ key }) => attributePrefix + key)])],
  }
}

function useExport(query: PeopleQuery, fields: readonly string[], total: number | undefined) {
  const [exported, setExported] = useState(0)
  const controller = useRef<AbortController>(undefined)
  const state = useMutation({
    mutationFn: async () => {
      setExported(0)
      controller.current = new AbortController()
      const { signal } = controller.current
      const name = `people-${new Date().toISOString().slice(0, 10)}.csv`
      const isLarge = total !== undefined && total > maxInMemory
      const target = (isLarge ? await fileTarget(name) : undefined) ?? blobTarget()
      await exportPeople(query, fields, target, { signal, onProgress: setExported })
      const file = await target.close()
      if (file) saveBlob(file, name)
    },
  })
  useEffect(() => () => controller.current?.abort(), [])
  return { start: () => state.mutate(), stop: () => controller.current?.abort(), exported, state }
}
