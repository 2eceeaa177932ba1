import type { Definitions, ImportMapping } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import type { DateOrder } from '../../../transfer/cell-parser.ts'
import { targetsOf } from '../../../transfer/columns.ts'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Actions } from '../ui/dialog.tsx'
import { EmptyState, Loading, Notice } from '../ui/page.tsx'
import { ConsentOriginSection, missingEvidence } from './consent-origin.tsx'
import { useFieldNames } from './field-names.ts'
import {
  attributeFieldOf,
  type CsvStart,
  earlierMapping,
  fieldName,
  type Mapping,
  mappingOf,
  type Reading,
  readCsvStart,
  readingOf,
  readNdjsonStart,
  repeatedFields,
  settingsFault,
  type Targets,
} from './file-reader.ts'
import type { ImportSetup } from './import-run.ts'
import { MappingTable } from './mapping-table.tsx'
import { messages } from './messages.ts'
import { NdjsonPreview, PreviewTable } from './preview-table.tsx'
import { ReadOptionFields } from './read-option-fields.tsx'
import { startImport } from './start-import.ts'
import styles from './transfer.module.css'
import { useRefusalTexts } from './use-refusal-texts.ts'

type SetupFormProps = {
  setup: ImportSetup
  definitions: Definitions
  onChange: (setup: ImportSetup) => void
  onAnotherFile: () => void
}

/** The form for how the file is read, before any line is sent. */
export function SetupForm({ setup, definitions, onChange, onAnotherFile }: SetupFormProps) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { file, options, owner } = setup
  const { format, encoding, delimiter } = options
  const isCsv = format === 'csv'
  const { faultText } = useRefusalTexts()
  const beginning = useQuery({
    queryKey: ['import', 'start', file.name, file.size, file.lastModified, format, encoding, delimiter, owner],
    queryFn: async () =>
      isCsv
        ? { csv: await readCsvStart(file, options), lines: null }
        : { csv: null, lines: await readNdjsonStart(file, options, owner) },
    gcTime: 0,
  })
  const fault = isCsv ? settingsFault(options) : null
  const mappings = useQuery({
    queryKey: ['import', 'mappings'],
    queryFn: ({ signal }) => client.imports.mappings({ signal }),
    staleTime: 0,
    enabled: isCsv,
  })
  const { csv = null, lines = null } = beginning.data ?? {}
  const targets = targetsOf(owner, definitions)
  const earlier = csv ? earlierMapping(csv, mappings.data ?? [], owner) : undefined
  const mapping = csv ? mappingOf(csv, setup.mapping, earlier, targets) : []
  const reading = csv && readingOf(csv, options, mapping, targets)
  const start = (isDryRun: boolean) => startImport({ setup: { ...setup, mapping }, definitions, start: csv, isDryRun })
  return (
    <>
      <div className={styles.fileLine}>
        <p className={styles.fileName}>
          <strong>{file.name}</strong> · {formats.bytes(file.size)}
        </p>
        <Button onPress={onAnotherFile}>{texts.chooseAnother}</Button>
      </div>
      <ReadOptionFields setup={setup} reading={reading} encoding={csv?.encoding} onChange={onChange} />
      {fault && <Notice kind="error" title={faultText(fault)} />}
      {beginning.error && (
        <Notice kind="error" title={texts.unreadable}>
          <p>{faultText(beginning.error.message)}</p>
          <p>{texts.unreadableAdvice}</p>
        </Notice>
      )}
      {beginning.isPending && <Loading />}
      {earlier && <EarlierMapping earlier={earlier} />}
      {!fault && csv && reading && (
        <CsvSetup {...{ setup, targets, mapping, reading, onChange }} start={csv} onStart={start} />
      )}
      {lines && (
        <>
          <NdjsonPreview items={lines} />
          <StartButtons isReady={lines.length > 0} onStart={start} />
        </>
      )}
    </>
  )
}

/** Says that the columns are mapped like in an earlier import, and can delete this mapping. */
function EarlierMapping({ earlier: { id, actor, saved_at } }: { earlier: ImportMapping }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const forget = useWrite(() => client.imports.forgetMapping(id), { refresh: [['import', 'mappings']] })
  return (
    <Notice kind="info" title={texts.earlierMapping(formats.dateTime(saved_at), actor)}>
      <Actions>
        <Button isDisabled={forget.isPending} onPress={() => forget.mutate()}>
          {texts.forgetMapping}
        </Button>
      </Actions>
    </Notice>
  )
}

type CsvSetupProps = {
  setup: ImportSetup
  targets: Targets
  mapping: Mapping
  reading: Reading
  start: CsvStart
  onChange: (setup: ImportSetup) => void
  onStart: (isDryRun: boolean) => void
}

function CsvSetup({ setup, targets, mapping, reading, start, onChange, onStart }: CsvSetupProps) {
  const texts = useMessages(messages)
  const nameOf = useFieldNames(targets)
  const change = (mapping: Mapping) => onChange({ ...setup, mapping })
  const setOrder = (dateOrder: DateOrder) => onChange({ ...setup, options: { ...setup.options, dateOrder } })
  const repeated = [...repeatedFields(mapping, targets)]
  const undecided = mapping.filter(field => field === null).length
  const asked = new Set(missingEvidence(mapping, targets).map(([, key]) => key))
  const needsMethod = asked.has('method') && setup.origin.method === null
  const isIdMapped = mapping.some(field => field && fieldName(field, targets) === 'external_id')
  const asAttribute = (name: string) => (name === '' ? '' : attributeFieldOf(name))
  if (start.records.length === 0) return <EmptyState title={texts.noLines} />
  return (
    <>
      <MappingTable start={start} mapping={mapping} targets={targets} onChange={change} />
      {undecided > 0 && (
        <Notice kind="caution">
          <p>{texts.undecided(undecided)}</p>
          <Actions>
            <Button onPress={() => change(mapping.map(field => field ?? ''))}>{texts.ignoreRest}</Button>
            <Button onPress={() => change(mapping.map((field, at) => field ?? asAttribute(start.names[at]!)))}>
              {texts.attributesRest}
            </Button>
          </Actions>
        </Notice>
      )}
      {repeated.map(field => (
        <Notice key={field} kind="error" title={texts.repeated(nameOf(field))} />
      ))}
      {reading.isOrderOpen && (
        <Notice kind="caution" title={texts.orderOpen}>
          <Actions>
            <Button onPress={() => setOrder('dmy')}>{texts.orderDmy}</Button>
            <Button onPress={() => setOrder('mdy')}>{texts.orderMdy}</Button>
          </Actions>
        </Notice>
      )}
      {asked.size > 0 && (
        <ConsentOriginSection origin={setup.origin} asked={asked} onChange={origin => onChange({ ...setup, origin })} />
      )}
      {!isIdMapped && <Notice kind="caution">{texts.noExternalId}</Notice>}
      <PreviewTable {...{ start, mapping, targets, reading }} phoneCountry={setup.phoneCountry} />
      <StartButtons
        isReady={undecided === 0 && repeated.length === 0 && !reading.isOrderOpen && !needsMethod}
        onStart={onStart}
      />
    </>
  )
}

function StartButtons({ isReady, onStart }: { isReady: boolean; onStart: (isDryRun: boolean) => void }) {
  const texts = useMessages(messages)
  return (
    <Actions>
      <Button isDisabled={!isReady} onPress={() => onStart(true)}>
        {texts.checkOnly}
      </Button>
      <Button look="primary" isDisabled={!isReady} onPress={() => onStart(false)}>
        {texts.importNow}
      </Button>
    </Actions>
  )
}
