import { type ReactNode, useContext, useState } from 'react'
import {
  Checkbox as AriaCheckbox,
  type CheckboxProps as AriaCheckboxProps,
  TextField as AriaTextField,
  type TextFieldProps as AriaTextFieldProps,
  FieldError,
  FormValidationContext,
  Input,
  Label,
  Text,
  TextArea,
} from 'react-aria-components'
import styles from './field.module.css'
import { Icon } from './icon.tsx'
import { useNoteChange } from './note-change.ts'

export type Labelled = {
  /** The visible label. Use `aria-label` only if the surroundings name the field. */
  label?: ReactNode
  help?: ReactNode
  /** Why the value is wrong. A form finds it by the name of the field. */
  error?: ReactNode
}

export type TextFieldProps = Omit<AriaTextFieldProps, 'className' | 'style' | 'children'> &
  Labelled & {
    placeholder?: string
    /** A text of several lines. */
    rows?: number
    /** The id of a list of suggestions. */
    list?: string
  }

/** A field for text, with its label, help and error. */
export function TextField({ label, help, error, placeholder, rows, list, onChange, ...props }: TextFieldProps) {
  const noteChange = useNoteChange()
  return (
    <AriaTextField
      {...props}
      onChange={text => {
        noteChange(props.name)
        onChange?.(text)
      }}
      {...(error && { isInvalid: true })}
      className="column tight"
    >
      {label && <Label className={styles.label}>{label}</Label>}
      {rows ? (
        <TextArea className={styles.input} rows={rows} placeholder={placeholder ?? ''} />
      ) : (
        <Input className={styles.input} placeholder={placeholder ?? ''} {...(list && { list })} />
      )}
      {help && (
        <Text slot="description" className="small">
          {help}
        </Text>
      )}
      <FieldError className={styles.error}>{error}</FieldError>
    </AriaTextField>
  )
}

type CheckboxProps = Omit<AriaCheckboxProps, 'className' | 'style' | 'children'> & {
  help?: ReactNode
  children?: ReactNode
}

/** A checkbox, with its explanation and its error below it. */
export function Checkbox({ help, children, onChange, ...props }: CheckboxProps) {
  const noteChange = useNoteChange()
  const box = (
    <AriaCheckbox
      {...props}
      onChange={isSelected => {
        noteChange(props.name)
        onChange?.(isSelected)
      }}
      className={styles.check}
    >
      {({ isIndeterminate }) => (
        <>
          <span className={styles.box} aria-hidden="true">
            {isIndeterminate ? '–' : <Icon name="check" />}
          </span>
          {children}
        </>
      )}
    </AriaCheckbox>
  )
  if (!props.name) return box
  return (
    <div className={styles.explained}>
      {box}
      {help && <p className="small">{help}</p>}
      <Fault name={props.name} />
    </div>
  )
}

/** The error of a field whose React Aria component shows none. */
export function Fault({ name }: { name: string | undefined }) {
  const errors = useContext(FormValidationContext)[name ?? '']
  if (!errors?.length) return null
  return (
    <p className={styles.error} role="alert">
      {[errors].flat().join(' ')}
    </p>
  )
}

type FieldGroupProps = {
  legend?: ReactNode
  'aria-label'?: string
  help?: ReactNode
  name?: string
  /** `grid` places the fields in columns, `frame` draws a frame around them. */
  look?: 'grid' | 'frame'
  isDisabled?: boolean
  children: ReactNode
}

/** Several fields of one value or one topic. */
export function FieldGroup({ legend, help, name, look, isDisabled, children, ...props }: FieldGroupProps) {
  return (
    <fieldset
      {...props}
      name={name}
      disabled={isDisabled}
      className={look ? `${styles.group} ${styles[look]}` : styles.group}
    >
      {legend && <legend className={styles.label}>{legend}</legend>}
      {children}
      {help && <p className="small">{help}</p>}
      <Fault name={name} />
    </fieldset>
  )
}

/** The properties of a field for a value. */
export type FieldProps<Value> = { name: string; onChange(value: Value): void } & ([Value] extends [boolean]
  ? { isSelected: Value }
  : { value: Value })

/**
 * Returns a function that makes the properties of a field for a member of a draft: its name, which is the member's path
 * in the request below `place`, its value, and the handler of a change.
 */
export const fieldsOf =
  <Draft extends object>(draft: Draft, change: (changed: Partial<Draft>) => void, place = '') =>
  <Name extends keyof Draft & string>(name: Name): FieldProps<Draft[Name]> => {
    const value = draft[name]
    return {
      name: `${place}/${name}`,
      onChange: (next: Draft[Name]) => change({ [name]: next } as unknown as Partial<Draft>),
      ...(typeof value === 'boolean' ? { isSelected: value } : { value }),
    } as unknown as FieldProps<Draft[Name]>
  }

/** The state of a form whose fields are members of the request. */
export function useDraft<Draft extends object>(initial: Draft | (() => Draft)) {
  const [draft, setDraft] = useState(initial)
  const change = (changed: Partial<Draft>) => setDraft(before => ({ ...before, ...changed }))
  return { draft, change, field: fieldsOf(draft, change) }
}
