import type { Definitions, MatchKind } from '@kith/client'
import type { Format } from '../../../transfer/file.ts'
import { useMessages } from '../app/language.tsx'
import { noCountry, useCountryChoices } from '../entity/countries.ts'
import { ComboBox } from '../ui/combo-box.tsx'
import { Checkbox, TextField } from '../ui/field.tsx'
import { Select } from '../ui/select.tsx'
import { type CsvStart, columnsOfMapping, findOptions, type Mapping, type ReadOptions } from './file-reader.ts'
import { type Encoding, encodings } from './file-source.ts'
import type { ImportSetup } from './import-setup.ts'
import { messages } from './messages.ts'
import styles from './transfer.module.css'

const encodingLabels: Record<Exclude<Encoding, 'detected'>, string> = {
  'utf-8': 'UTF-8',
  'windows-1252': 'Windows-1252 (Excel)',
  'utf-16le': 'UTF-16',
}

type ReadOptionFieldsProps = {
  setup: ImportSetup
  mapping: Mapping
  definitions: Definitions
  onChange: (setup: ImportSetup) => void
  /** The beginning of a CSV file, which tells how the file is written. */
  start: CsvStart | null
}

/** The choices of how a file is read, and of what its lines may change. */
export function ReadOptionFields({ setup, mapping, definitions, onChange, start }: ReadOptionFieldsProps) {
  const texts = useMessages(messages)
  const countries = useCountryChoices()
  const { options, owner, match } = setup
  const encoding = start?.encoding
  const change = (changed: Partial<ReadOptions>) => onChange({ ...setup, options: { ...options, ...changed } })
  return (
    <div className={styles.options}>
      <Select<Format>
        label={texts.format}
        options={{ csv: texts.csv, ndjson: texts.ndjson }}
        value={options.format}
        onChange={format => change({ format })}
      />
      <Select<Encoding>
        label={texts.encoding}
        options={encodings.map(value => ({
          value,
          label: value === 'detected' ? [texts.detected, encoding].filter(Boolean).join(': ') : encodingLabels[value],
        }))}
        value={options.encoding}
        onChange={encoding => change({ encoding })}
      />
      {options.format === 'csv' && (
        <CsvOptionFields setup={setup} mapping={mapping} definitions={definitions} start={start} onChange={change} />
      )}
      {owner === 'people' && (
        <Select<string>
          label={texts.match}
          options={{
            external_id: texts.matchId,
            'external_id,email': texts.matchEmail,
            'external_id,email,mobile': texts.matchMobile,
          }}
          value={match.join()}
          onChange={value => onChange({ ...setup, match: value.split(',') as MatchKind[] })}
        />
      )}
      {owner === 'people' && (
        <ComboBox
          label={texts.phoneCountry}
          isLabelShown
          placeholder={texts.phoneCountry}
          choices={countries}
          value={setup.phoneCountry ?? noCountry}
          onChange={name => onChange({ ...setup, phoneCountry: name === noCountry ? null : name })}
        />
      )}
      {match.length > 1 && (
        <Checkbox isSelected={setup.takesShared} onChange={takesShared => onChange({ ...setup, takesShared })}>
          {texts.takesShared}
        </Checkbox>
      )}
      <Checkbox isSelected={setup.isCreateOnly} onChange={isCreateOnly => onChange({ ...setup, isCreateOnly })}>
        {texts.createOnly}
      </Checkbox>
      <Checkbox isSelected={setup.addsToLists} onChange={addsToLists => onChange({ ...setup, addsToLists })}>
        {texts.addsToLists}
      </Checkbox>
      {owner === 'people' && (
        <Checkbox
          isSelected={setup.areAnswersOfNow}
          onChange={areAnswersOfNow => onChange({ ...setup, areAnswersOfNow })}
        >
          {texts.answersOfNow}
        </Checkbox>
      )}
    </div>
  )
}

type CsvOptionFieldsProps = {
  setup: ImportSetup
  mapping: Mapping
  definitions: Definitions
  start: CsvStart | null
  onChange: (changed: Partial<ReadOptions>) => void
}

function CsvOptionFields({ setup: { options, owner }, mapping, definitions, start, onChange }: CsvOptionFieldsProps) {
  const texts = useMessages(messages)
  const found = start && findOptions(options, start, columnsOfMapping(start.names, mapping, owner, definitions)).options
  const foundText = (text: string | null | undefined) => [texts.detected, text].filter(Boolean).join(': ')
  const marks = { '.': '0.5', ',': '0,5' }
  const orders = { dmy: texts.dateOrderDmy, mdy: texts.dateOrderMdy }
  const delimiters: Record<string, string> = { '\t': texts.tab }
  return (
    <>
      <Select
        label={texts.delimiter}
        options={{
          detected: foundText(start && (delimiters[start.delimiter] ?? start.delimiter)),
          ',': ',',
          ';': ';',
          '\t': texts.tab,
          '|': '|',
        }}
        value={options.delimiter ?? 'detected'}
        onChange={value => onChange({ delimiter: value === 'detected' ? null : value })}
      />
      <Select<'detected' | '.' | ','>
        label={texts.decimal}
        options={{ detected: foundText(found && marks[found.decimal]), '.': marks['.'], ',': marks[','] }}
        value={options.decimal ?? 'detected'}
        onChange={value => onChange({ decimal: value === 'detected' ? null : value })}
      />
      <Select<'detected' | 'dmy' | 'mdy'>
        label={texts.dateOrder}
        options={{
          detected: foundText(found?.dateOrder && orders[found.dateOrder]),
          dmy: texts.dateOrderDmy,
          mdy: texts.dateOrderMdy,
        }}
        value={options.dateOrder ?? 'detected'}
        onChange={value => onChange({ dateOrder: value === 'detected' ? null : value })}
      />
      <Select<'none' | 'Z' | 'local'>
        label={texts.offset}
        options={{
          none: texts.offsetNone,
          Z: texts.offsetUtc,
          local: `${texts.offsetLocal} (${Intl.DateTimeFormat().resolvedOptions().timeZone})`,
        }}
        value={options.offset ?? 'none'}
        onChange={value => onChange({ offset: value === 'none' ? null : value })}
      />
      <Select<'absent' | 'null'>
        label={texts.empty}
        options={{ absent: texts.emptyKeep, null: texts.emptyClear }}
        value={options.empty}
        onChange={empty => onChange({ empty })}
      />
      <TextField
        label={texts.trueWords}
        value={options.trueWords}
        onChange={trueWords => onChange({ trueWords })}
        help={texts.wordsHelp}
      />
      <TextField
        label={texts.falseWords}
        value={options.falseWords}
        onChange={falseWords => onChange({ falseWords })}
      />
      <TextField label={texts.nullWords} value={options.nullWords} onChange={nullWords => onChange({ nullWords })} />
    </>
  )
}
