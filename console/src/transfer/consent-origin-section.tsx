import { useMessages } from '../app/language.tsx'
import { messages as entityMessages } from '../entity/messages.ts'
import { FieldGroup, TextField } from '../ui/field.tsx'
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
  return (
    <Section title={texts.origin}>
      <p className="muted">{texts.originAdvice}</p>
      <FieldGroup look="grid">
        {asked.has('method') && (
          <Select<string>
            label={texts.evidence.method}
            options={methods.map(value => ({ value, label: methodNames[value] }))}
            value={origin.method}
            onChange={method => onChange({ ...origin, method })}
          />
        )}
        {asked.has('source') && (
          <TextField
            label={texts.evidence.source}
            help={texts.originSourceHelp}
            value={origin.source}
            onChange={source => onChange({ ...origin, source })}
          />
        )}
        {asked.has('collected_at') && (
          <TextField
            type="date"
            label={texts.evidence.collected_at}
            help={texts.originDayHelp}
            value={origin.day}
            onChange={day => onChange({ ...origin, day })}
          />
        )}
      </FieldGroup>
    </Section>
  )
}
