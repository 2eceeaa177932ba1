import { type ClipboardEvent, useId, useState } from 'react'
import { useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { ComboBox } from '../ui/combo-box.tsx'
import { Checkbox, FieldGroup, TextField, type TextFieldProps } from '../ui/field.tsx'
import { Select } from '../ui/select.tsx'
import { countryOf, isInternational, noCountry, useCountries, useCountryChoices } from './countries.ts'
import type { Draft, Field, FieldKind } from './fields.ts'
import styles from './form.module.css'
import { type EntityTexts, messages } from './messages.ts'
import { Suggestions } from './suggestions.tsx'

type FieldEditorProps = {
  field: Field
  draft: Draft
  onChange(draft: Draft): void
  autoFocus?: boolean
}

/** The editor of a field, by its type. */
export function FieldEditor({ draft, ...props }: FieldEditorProps) {
  const texts = useMessages(messages)
  const { path: name, label } = props.field
  return (
    <div className={isWide(props.field, draft) ? styles.wide : ''}>
      {Array.isArray(draft) ? (
        <ListEditor {...props} draft={draft} />
      ) : (
        <TextEditor {...props} {...{ name, label }} help={helpOf(props.field, texts)} text={draft} />
      )}
    </div>
  )
}

type FieldEditorsProps = {
  fields: readonly Field[]
  draftOf(field: Field): Draft
  onChange(field: Field, draft: Draft): void
}

/** The editors of fields, in their order. The first one has the focus. The prefix and the number of a phone have one editor. */
export function FieldEditors({ fields, draftOf, onChange }: FieldEditorsProps) {
  const [prefix, number] = ['/mobile_prefix', '/mobile_number'].map(path => fields.find(field => field.path === path))
  return fields.map((field, index) => {
    if (prefix && number && field === number) return null
    if (prefix && number && field === prefix) {
      const drafts = { prefix: draftOf(prefix) as string, number: draftOf(number) as string }
      return <PhoneEditor key={field.path} prefix={prefix} number={number} drafts={drafts} onChange={onChange} />
    }
    return (
      <FieldEditor
        key={field.path}
        field={field}
        draft={draftOf(field)}
        onChange={draft => onChange(field, draft)}
        autoFocus={index === 0}
      />
    )
  })
}

type PlaceholderCheckboxProps = {
  fields: readonly Field[]
  isSelected: boolean
  onChange(isSelected: boolean): void
}

/** Asks whether missing targets of relationships may be created, if one of the fields is a relationship. */
export function PlaceholderCheckbox({ fields, isSelected, onChange }: PlaceholderCheckboxProps) {
  const texts = useMessages(messages)
  if (fields.every(({ target }) => target === undefined)) return null
  return (
    <Checkbox isSelected={isSelected} onChange={onChange}>
      {texts.makeTargets}
    </Checkbox>
  )
}

const isWide = ({ kind }: Field, draft: Draft) =>
  Array.isArray(draft) || kind === 'json' || (kind === 'text' && draft.length > 60)

function helpOf({ kind, isMany, allowed, help, isRequired }: Field, texts: EntityTexts): string | undefined {
  const takesLines = isMany && !allowed && ['text', 'number', 'link'].includes(kind)
  const ofKind: Partial<Record<FieldKind, string>> = {
    link: texts.linkHelp,
    json: texts.jsonHelp,
    datetime: texts.timeZoneHelp(Intl.DateTimeFormat().resolvedOptions().timeZone),
  }
  const parts = [help, ofKind[kind], takesLines && texts.listHelp, isRequired && texts.required]
  return parts.filter(Boolean).join(' ') || undefined
}

/** A value of a list has no name, and no visible label. */
type TextEditorProps = Pick<TextFieldProps, 'name' | 'label' | 'aria-label' | 'help' | 'autoFocus'> & {
  field: Field
  text: string
  onChange(text: string): void
}

const noValue = 'none'

function TextEditor({ field, text, onChange, ...shared }: TextEditorProps) {
  const texts = useMessages(messages)
  const list = useId()
  // A growing text stays in the same element, because another element would lose the focus.
  const [isLong] = useState(text.length > 60)
  const options = optionsOf(field, text, texts)
  if (options)
    return (
      <Select
        {...shared}
        options={[{ value: noValue, label: texts.noValue }, ...options]}
        value={text === '' ? noValue : text}
        onChange={value => onChange(value === noValue ? '' : value)}
      />
    )
  const { kind } = field
  const isJson = kind === 'json'
  const rows = isJson ? Math.min(12, text.split('\n').length + 1) : isLong || text.includes('\n') ? 4 : 0
  return (
    <>
      <TextField
        {...shared}
        {...(rows > 0 && { rows })}
        {...(field.suggested && { list })}
        {...(isJson && { spellCheck: 'false' })}
        {...(kind === 'date' && { type: 'date' })}
        {...(kind === 'datetime' && { type: 'datetime-local' })}
        {...(kind === 'number' && { inputMode: 'decimal' as const })}
        autoComplete="off"
        value={text}
        onChange={onChange}
      />
      {field.suggested && <Suggestions id={list} of={field.suggested} typed={text} />}
    </>
  )
}

function optionsOf({ kind, allowed }: Field, text: string, texts: EntityTexts) {
  const values = allowed ?? (kind === 'boolean' ? [true, false] : undefined)
  if (!values) return undefined
  const labelOf = (value: unknown) => (typeof value === 'boolean' ? (value ? texts.yes : texts.no) : String(value))
  const options = values.map(value => ({ value: JSON.stringify(value), label: labelOf(value) }))
  // A later rule may not allow the stored value.
  const isListed = text === '' || options.some(({ value }) => value === text)
  return isListed ? options : [...options, { value: text, label: labelOf(JSON.parse(text)) }]
}

function ListEditor({ field, draft, onChange, autoFocus = false }: FieldEditorProps & { draft: string[] }) {
  const texts = useMessages(messages)
  const [added, setAdded] = useState(autoFocus ? 0 : undefined)
  return (
    <FieldGroup legend={field.label} name={field.path} help={helpOf(field, texts)}>
      {draft.map((text, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the position is all that names a value of the list
        <div key={index} className={styles.item} onPaste={event => paste(event, draft, index, onChange)}>
          <TextEditor
            field={field}
            aria-label={texts.itemOf(field.label, index + 1)}
            autoFocus={index === added}
            text={text}
            onChange={text => onChange(draft.with(index, text))}
          />
          <Button
            aria-label={texts.removeItem(index + 1)}
            look="quiet"
            onPress={() => onChange(draft.filter((_, at) => at !== index))}
          >
            ×
          </Button>
        </div>
      ))}
      <div>
        <Button
          onPress={() => {
            setAdded(draft.length)
            onChange([...draft, ''])
          }}
        >
          {texts.addItem}
        </Button>
      </div>
    </FieldGroup>
  )
}

/** Turns each pasted line into a value. A field of the browser would join the lines. */
function paste(event: ClipboardEvent, draft: string[], index: number, onChange: (draft: string[]) => void) {
  const lines = event.clipboardData.getData('text').split(/\r?\n/)
  const isOneLine = event.target instanceof HTMLInputElement && event.target.type === 'text'
  if (!isOneLine || lines.length < 2) return
  event.preventDefault()
  const items = draft.toSpliced(index + 1, 0, ...lines.map(line => line.trim()))
  onChange(items.filter(text => text !== ''))
}

type PhoneEditorProps = {
  prefix: Field
  number: Field
  drafts: { prefix: string; number: string }
  onChange(field: Field, draft: string): void
}

/**
 * A phone number with its country. The prefix and the number stay as typed. A number that begins with a prefix shows
 * the country of that prefix, like the service. Countries with the same prefix are distinguished only until the form is
 * closed.
 */
function PhoneEditor({ prefix, number, drafts, onChange }: PhoneEditorProps) {
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
