import { useState } from 'react'
import { useMessages } from '../app/language.tsx'
import { ComboBox } from '../ui/combo-box.tsx'
import { FieldGroup, TextField } from '../ui/field.tsx'
import { countryOf, isInternational, noCountry, useCountries, useCountryChoices } from './countries.ts'
import type { Field } from './fields.ts'
import styles from './form.module.css'
import { messages } from './messages.ts'

type PhoneEditorProps = {
  prefix: Field
  number: Field
  drafts: { prefix: string; number: string }
  onChange(field: Field, draft: string): void
}

/**
 * A phone number with its country: the prefix and the number as they are written. A number with a prefix of its own shows that country, as the
 * service reads it. Countries that share a prefix are told apart until the form is closed.
 */
export function PhoneEditor({ prefix, number, drafts, onChange }: PhoneEditorProps) {
  const texts = useMessages(messages)
  const countries = useCountries()
  const [chosen, setChosen] = useState<string>()
  const choices = useCountryChoices()
  const written = isInternational(drafts.number) ? drafts.number : drafts.prefix
  const isChosen = countries.some(({ code, callingCode }) => code === chosen && drafts.prefix === `+${callingCode}`)
  const country = written === '' ? noCountry : written === drafts.prefix && isChosen ? chosen! : countryOf(written)
  const choose = (name: string) => {
    setChosen(name)
    const country = countries.find(({ code }) => code === name)
    onChange(prefix, country ? `+${country.callingCode}` : '')
  }
  return (
    <FieldGroup legend={texts.phone}>
      <div className={styles.phone}>
        <ComboBox
          label={texts.country}
          name={prefix.path}
          placeholder={texts.country}
          choices={choices}
          value={country ?? written}
          onChange={choose}
        />
        <TextField
          aria-label={number.label}
          name={number.path}
          type="tel"
          autoComplete="off"
          value={drafts.number}
          onChange={text => onChange(number, text)}
        />
      </div>
    </FieldGroup>
  )
}
