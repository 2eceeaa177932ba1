import type { Definitions, ImportMapping } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import type { DateOrder } from '../../../transfer/cell-parser.ts'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Actions } from '../ui/dialog.tsx'
import { EmptyState, Loading, Notice } from '../ui/page.tsx'
import { missingEvidence } from './consent-origin.ts'
import { ConsentOriginSection } from './consent-origin-section.tsx'
import { useFieldNames } from './field-names.ts'
import {
  attributeFieldOf,
  type CsvStart,
  columnsOfMapping,
  earlierMapping,
  fieldName,
  findOptions,
  type Mapping,
  mappingOf,
  readCsvStart,
  readNdjsonStart,
  repeatedFields,
  settingsFault,
} from './file-reader.ts'
import { type ImportSetup, startImport } from './import-setup.ts'
import { MappingTable } from './mapping-table.tsx'
import { messages } from './messages.ts'
import { NdjsonPreview, PreviewTable } from './preview-table.tsx'
import { ReadOptionFields } from './read-option-fields.tsx'
import styles from './transfer.module.css'
import { useRefusalTexts } from './use-refusal-texts.ts'

type SetupProps = {
  setup: ImportSetup
  definitions: Definitions
  onChange: (setup: ImportSetup) => void
  onAnotherFile: () => void
}

/** Where a person says how the file is read, before anything is sent. */
export function SetupForm(props: SetupProps) {
  const { setup, definitions, onAnotherFile } = props
  const texts = useMessages(messages)
  const formats = useFormats()
  const { file, options, owner } = setup
  const { format, encoding, delimiter } = options
  const isCsv = format === 'csv'
  const { faultText } = useRefusalTexts()
  const start = useQuery({
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
  const csv = start.data?.csv ?? null
  const earlier = csv ? earlierMapping(csv, mappings.data ?? [], owner) : undefined
  const mapping = csv ? mappingOf(csv, setup.mapping, earlier, owner, definitions) : []
  return (
    <>
      <div className={styles.fileLine}>
        <p className={styles.fileName}>
          <strong>{file.name}</strong> · {formats.bytes(file.size)}
        </p>
        <Button onPress={onAnotherFile}>{texts.chooseAnother}</Button>
      </div>
      <ReadOptionFields {...props} mapping={mapping} start={csv} />
      {fault && <Notice kind="error" title={faultText(fault)} />}
      {start.error && (
        <Notice kind="error" title={texts.unreadable}>
          <p>{faultText(start.error.message)}</p>
          <p>{texts.unreadableAdvice}</p>
        </Notice>
      )}
      {start.isPending && <Loading />}
      {earlier && <EarlierMapping earlier={earlier} />}
      {!fault && csv && <CsvSetup {...props} mapping={mapping} start={csv} />}
      {start.data?.lines && (
        <>
          <NdjsonPreview items={start.data.lines} />
          <StartButtons
            isReady={start.data.lines.length > 0}
            onStart={isDryRun => startImport(setup, definitions, null, isDryRun)}
          />
        </>
      )}
    </>
  )
}

/** Says that the columns are those of an earlier import, and forgets them. */
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

type CsvSetupProps = SetupProps & { mapping: Mapping; start: CsvStart }

function CsvSetup({ setup, definitions, onChange, mapping, start }: CsvSetupProps) {
  const texts = useMessages(messages)
  const { owner } = setup
  const change = (changed: typeof mapping) => onChange({ ...setup, mapping: changed })
  const repeated = [...repeatedFields(mapping, owner, definitions)]
  const undecided = mapping.filter(field => field === null).length
  const nameOf = useFieldNames(owner, definitions)
  const { isOrderOpen, options } = findOptions(
    setup.options,
    start,
    columnsOfMapping(start.names, mapping, owner, definitions),
  )
  const asked = new Set(missingEvidence(mapping, owner, definitions).map(([, key]) => key))
  const needsMethod = asked.has('method') && setup.origin.method === null
  const setOrder = (dateOrder: DateOrder) => onChange({ ...setup, options: { ...setup.options, dateOrder } })
  const isIdMapped = mapping.some(field => field && fieldName(field, owner, definitions) === 'external_id')
  if (start.records.length === 0) return <EmptyState title={texts.noLines} />
  return (
    <>
      <MappingTable start={start} mapping={mapping} owner={owner} definitions={definitions} onChange={change} />
      {undecided > 0 && (
        <Notice kind="caution">
          <p>{texts.undecided(undecided)}</p>
          <Actions>
            <Button onPress={() => change(mapping.map(field => field ?? ''))}>{texts.ignoreRest}</Button>
            <Button
              onPress={() =>
                change(
                  mapping.map((field, index) => {
                    const name = start.names[index]!
                    return field ?? (name === '' ? '' : attributeFieldOf(name))
                  }),
                )
              }
            >
              {texts.attributesRest}
            </Button>
          </Actions>
        </Notice>
      )}
      {repeated.map(field => (
        <Notice key={field} kind="error" title={texts.repeated(nameOf(field))} />
      ))}
      {isOrderOpen && (
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
      <PreviewTable
        start={start}
        mapping={mapping}
        owner={owner}
        definitions={definitions}
        options={options}
        phoneCountry={setup.phoneCountry}
      />
      <StartButtons
        isReady={undecided === 0 && repeated.length === 0 && !isOrderOpen && !needsMethod}
        onStart={isDryRun => startImport({ ...setup, mapping }, definitions, start, isDryRun)}
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
