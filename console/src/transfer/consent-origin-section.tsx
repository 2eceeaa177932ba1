import { useMessages } from '../app/language.tsx'
import { messages as entityMessages } from '../entity/messages.ts'
import { FieldGroup, fieldsOf, TextField } from '../ui/field.tsx'
import { Section } from '../ui/page.tsx'
import { Select } from '../ui/select.tsx'
import type { AskedEvidence, ConsentOrigin } from './consent-origin.ts'
import { messages } from './messages.ts'

const methods = ['web_form', 'double_opt_in', 'preference_page', 'phone', 'paper', 'import', 'other'] as const

type ConsentOriginSectionProps = {
  origin: ConsentOrigin
  asked: ReadonlySet<AskedEvidence>
  onChange: (origin: ConsentOrigin) => void
}

/** Asks once how, where and when the consents of a file were given, as far as no column says it. */
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
