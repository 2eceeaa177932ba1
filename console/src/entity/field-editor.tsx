import { useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Select, TextField } from '../ui/field.tsx'
import type { Draft, Field } from './fields.ts'
import styles from './form.module.css'
import { messages } from './messages.ts'

type FieldEditorProps = {
  field: Field
  draft: Draft
  onChange(draft: Draft): void
  error?: string | undefined
  autoFocus?: boolean
}

/** The editor of a field, by its type. */
export function FieldEditor({ field, draft, onChange, error, autoFocus = false }: FieldEditorProps) {
  const texts = useMessages(messages)
  const help = helpOf(field, texts)
  if (Array.isArray(draft)) return <ListEditor field={field} draft={draft} onChange={onChange} error={error} />
  return (
    <div className={isWide(field, draft) ? styles.wide! : ''}>
      <ValueEditor
        field={field}
        label={field.label}
        help={help}
        text={draft}
        onChange={onChange}
        error={error}
        autoFocus={autoFocus}
      />
    </div>
  )
}

const isWide = ({ kind }: Field, draft: string) => kind === 'json' || (kind === 'text' && draft.length > 60)

function helpOf({ kind, help, isRequired }: Field, texts: (typeof messages)['en']): string | undefined {
  const own = kind === 'link' ? texts.linkHelp : kind === 'json' ? texts.jsonHelp : undefined
  return [help, own, isRequired ? texts.required : undefined].filter(Boolean).join(' ') || undefined
}

type ValueEditorProps = {
  field: Field
  /** Names the editor. `isHidden` where a group around it already does. */
  label: string
  isHidden?: boolean
  help?: string | undefined
  text: string
  onChange(text: string): void
  error?: string | undefined
  autoFocus?: boolean
}

const noValue = 'none'

function ValueEditor({ field, label, isHidden, help, text, onChange, error, autoFocus = false }: ValueEditorProps) {
  const texts = useMessages(messages)
  const naming = isHidden ? { 'aria-label': label } : { label }
  const shared = { ...naming, ...(help && { help }), ...(error && { error }) }
  const options = optionsOf(field, texts)
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
  const rows =
    kind === 'json' ? Math.min(12, text.split('\n').length + 1) : text.length > 60 || text.includes('\n') ? 4 : 0
  return (
    <TextField
      {...shared}
      {...(rows > 0 && { rows })}
      {...(kind === 'date' && { type: 'date' })}
      {...(kind === 'datetime' && { type: 'datetime-local' })}
      {...(kind === 'number' && { inputMode: 'decimal' as const })}
      autoFocus={autoFocus}
      autoComplete="off"
      value={text}
      onChange={onChange}
    />
  )
}

function optionsOf({ kind, allowed }: Field, texts: (typeof messages)['en']) {
  if (allowed) return allowed.map(value => ({ value: JSON.stringify(value), label: String(value) }))
  if (kind !== 'boolean') return undefined
  return [
    { value: 'true', label: texts.yes },
    { value: 'false', label: texts.no },
  ]
}

function ListEditor({ field, draft, onChange, error }: FieldEditorProps & { draft: string[] }) {
  const texts = useMessages(messages)
  const help = helpOf(field, texts)
  const set = (index: number, text: string) => onChange(draft.map((old, at) => (at === index ? text : old)))
  return (
    <fieldset className={`${styles.list} ${styles.wide}`}>
      <legend className={styles.legend!}>{field.label}</legend>
      {draft.map((text, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the position is all that names a value of the list
        <div key={index} className={styles.item!}>
          <ValueEditor
            field={field}
            label={texts.itemOf(field.label, index + 1)}
            isHidden
            text={text}
            onChange={text => set(index, text)}
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
        <Button onPress={() => onChange([...draft, ''])}>{texts.addItem}</Button>
      </div>
      {help && <p className={styles.help!}>{help}</p>}
      {error && (
        <p className={styles.error!} role="alert">
          {error}
        </p>
      )}
    </fieldset>
  )
}
