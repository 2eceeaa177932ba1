import type { MatchKind } from '@kith/client'
import { useMessages } from '../app/language.tsx'
import { noCountry, useCountryChoices } from '../entity/countries.ts'
import { ComboBox } from '../ui/combo-box.tsx'
import { Checkbox, fieldsOf, TextField } from '../ui/field.tsx'
import { Select } from '../ui/select.tsx'
import type { Reading } from './file-reader.ts'
import type { ImportSetup } from './import-run.ts'
import { messages } from './messages.ts'
import styles from './transfer.module.css'

type ReadOptionFieldsProps = {
  setup: ImportSetup
  /** How a CSV file is read. Null before it is known. */
  reading: Reading | null
  encoding: string | undefined
  onChange: (setup: ImportSetup) => void
}

/** The choices about reading a file, and about the effects of its lines. */
export function ReadOptionFields({ setup, reading, encoding, onChange }: ReadOptionFieldsProps) {
  const texts = useMessages(messages)
  const countries = useCountryChoices()
  const { options, owner, match, phoneCountry } = setup
  const isOfPeople = owner === 'people'
  const change = (changed: Partial<ImportSetup>) => onChange({ ...setup, ...changed })
  const field = fieldsOf(setup, change)
  const option = fieldsOf(options, changed => change({ options: { ...options, ...changed } }))
  const detected = (found: string | null | undefined) => [texts.detected, found].filter(Boolean).join(': ')
  const delimiters: Record<string, string> = { ',': ',', ';': ';', '\t': texts.tab, '|': '|' }
  const marks = { '.': '0.5', ',': '0,5' }
  const orders = { detected: undefined, dmy: texts.dateOrderDmy, mdy: texts.dateOrderMdy }
  const found = reading?.options
  return (
    <div className={styles.options}>
      <Select label={texts.format} options={{ csv: texts.csv, ndjson: texts.ndjson }} {...option('format')} />
      <Select
        label={texts.encoding}
        options={{
          detected: detected(encoding),
          'utf-8': 'UTF-8',
          'windows-1252': 'Windows-1252 (Excel)',
          'utf-16le': 'UTF-16',
        }}
        {...option('encoding')}
      />
      {options.format === 'csv' && (
        <>
          <Select
            label={texts.delimiter}
            options={{ detected: detected(reading && delimiters[reading.delimiter]), ...delimiters }}
            {...option('delimiter')}
          />
          <Select
            label={texts.decimal}
            options={{ detected: detected(found && marks[found.decimal]), ...marks }}
            {...option('decimal')}
          />
          <Select
            label={texts.dateOrder}
            options={{ ...orders, detected: detected(found && orders[found.dateOrder]) }}
            {...option('dateOrder')}
          />
          <Select
            label={texts.offset}
            options={{
              none: texts.offsetNone,
              Z: texts.offsetUtc,
              local: `${texts.offsetLocal} (${Intl.DateTimeFormat().resolvedOptions().timeZone})`,
            }}
            {...option('offset')}
          />
          <Select
            label={texts.empty}
            options={{ absent: texts.emptyKeep, null: texts.emptyClear }}
            {...option('empty')}
          />
          <TextField label={texts.trueWords} help={texts.wordsHelp} {...option('trueWords')} />
          <TextField label={texts.falseWords} {...option('falseWords')} />
          <TextField label={texts.nullWords} {...option('nullWords')} />
        </>
      )}
      {isOfPeople && (
        <>
          <Select<string>
            label={texts.match}
            options={{
              external_id: texts.matchId,
              'external_id,email': texts.matchEmail,
              'external_id,email,mobile': texts.matchMobile,
            }}
            value={match.join()}
            onChange={value => change({ match: value.split(',') as MatchKind[] })}
          />
          <ComboBox
            label={texts.phoneCountry}
            isLabelShown
            placeholder={texts.phoneCountry}
            choices={countries}
            value={phoneCountry ?? noCountry}
            onChange={name => change({ phoneCountry: name === noCountry ? null : name })}
          />
        </>
      )}
      {match.length > 1 && <Checkbox {...field('takesShared')}>{texts.takesShared}</Checkbox>}
      <Checkbox {...field('isCreateOnly')}>{texts.createOnly}</Checkbox>
      <Checkbox {...field('addsToLists')}>{texts.addsToLists}</Checkbox>
      {isOfPeople && <Checkbox {...field('areAnswersOfNow')}>{texts.answersOfNow}</Checkbox>}
    </div>
  )
}
