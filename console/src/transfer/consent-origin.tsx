import { findTarget } from '../../../transfer/columns.ts'
import { useMessages } from '../app/language.tsx'
import { momentOf } from '../entity/fields.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { FieldGroup, fieldsOf, TextField } from '../ui/field.tsx'
import { Section } from '../ui/page.tsx'
import { Select } from '../ui/select.tsx'
import type { Mapping, Targets } from './file-reader.ts'
import { messages } from './messages.ts'

/** The origin of the consents of a file, entered once for all of its lines. */
export type ConsentOrigin = { method: string | null; source: string; day: string }

/** The evidence that a file may lack, by its keys in an answer. */
const askedEvidence = ['method', 'source', 'collected_at'] as const
type AskedEvidence = (typeof askedEvidence)[number]

/** The evidence that no column has, for each consent that a column answers. */
export function missingEvidence(mapping: Mapping, targets: Targets): [field: string, AskedEvidence][] {
  return mapping.flatMap(field => {
    if (!field || findTarget(field, targets)?.to !== 'consent') return []
    return askedEvidence
      .map((key): [string, AskedEvidence] => [`${field}.${key}`, key])
      .filter(([name]) => !mapping.includes(name))
  })
}

/** The cells that the origin adds to every record, by their fields. */
export function originCells({ method, source, day }: ConsentOrigin, missing: [field: string, AskedEvidence][]) {
  const values = { method: method ?? '', source: source.trim(), collected_at: momentOf(`${day}T00:00`) ?? '' }
  return new Map(missing.map(([field, key]) => [field, values[key]] as const).filter(([, cell]) => cell !== ''))
}

const methods = ['web_form', 'double_opt_in', 'preference_page', 'phone', 'paper', 'import', 'other'] as const

type ConsentOriginSectionProps = {
  origin: ConsentOrigin
  asked: ReadonlySet<AskedEvidence>
  onChange: (origin: ConsentOrigin) => void
}

/** Asks once how, where and when the consents of a file were given, unless columns say it. */
export function ConsentOriginSection({ origin, asked, onChange }: ConsentOriginSectionProps) {
  const texts = useMessages(messages)
  const { methods: methodNames } = useMessages(entityMessages)
  const field = fieldsOf(origin, changed => onChange({ ...origin, ...changed }))
  const { method, source, collected_at } = texts.evidence
  const options = methods.map(value => ({ value, label: methodNames[value] }))
  return (
    <Section title={texts.origin}>
      <p className="muted">{texts.originAdvice}</p>
      <FieldGroup look="grid">
        {asked.has('method') && <Select<string> label={method} options={options} {...field('method')} />}
        {asked.has('source') && <TextField label={source} help={texts.originSourceHelp} {...field('source')} />}
        {asked.has('collected_at') && (
          <TextField type="date" label={collected_at} help={texts.originDayHelp} {...field('day')} />
        )}
      </FieldGroup>
    </Section>
  )
}
