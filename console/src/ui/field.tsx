import { type ReactNode, useContext } from 'react'
import {
  Checkbox as AriaCheckbox,
  type CheckboxProps as AriaCheckboxProps,
  Select as AriaSelect,
  TextField as AriaTextField,
  type TextFieldProps as AriaTextFieldProps,
  Button,
  FieldError,
  FormValidationContext,
  Input,
  Label,
  ListBox,
  ListBoxItem,
  Popover,
  SelectValue,
  Text,
  TextArea,
} from 'react-aria-components'
import { useNoteChange } from './dialog.tsx'
import styles from './field.module.css'
import { Icon } from './icon.tsx'

type Labelled = {
  /** The visible label. Use `aria-label` instead only where the surroundings name the field. */
  label?: ReactNode
  help?: ReactNode
  /** Why the value is wrong. In a form, the form knows it by the name of the field. */
  error?: ReactNode
}

export type TextFieldProps = Omit<AriaTextFieldProps, 'className' | 'style' | 'children'> &
  Labelled & {
    placeholder?: string /** A text of several lines. */
    rows?: number
    inputRef?: React.Ref<HTMLInputElement>
  }

/** A field for text, with its label, help and error. */
export function TextField({ label, help, error, placeholder, rows, inputRef, onChange, ...props }: TextFieldProps) {
  const noteChange = useNoteChange()
  return (
    <AriaTextField
      {...props}
      onChange={text => {
        noteChange(props.name)
        onChange?.(text)
      }}
      {...(error && { isInvalid: true })}
      className={styles.field!}
    >
      {label && <Label className={styles.label!}>{label}</Label>}
      {rows ? (
        <TextArea className={styles.input!} rows={rows} placeholder={placeholder ?? ''} />
      ) : (
        <Input className={styles.input!} placeholder={placeholder ?? ''} ref={inputRef ?? null} />
      )}
      {help && (
        <Text slot="description" className={styles.help!}>
          {help}
        </Text>
      )}
      <FieldError className={styles.error!}>{error}</FieldError>
    </AriaTextField>
  )
}

export type Option<Value extends string> = { value: Value; label: string; help?: string; isDisabled?: boolean }

export type SelectProps<Value extends string> = Labelled & {
  options: readonly Option<Value>[]
  value: Value | null
  onChange(value: Value): void
  name?: string
  placeholder?: string
  'aria-label'?: string
  isDisabled?: boolean
}

/** A field with a fixed list of values. */
export function Select<Value extends string>({
  label,
  help,
  error,
  options,
  value,
  onChange,
  placeholder,
  ...props
}: SelectProps<Value>) {
  const noteChange = useNoteChange()
  return (
    <AriaSelect
      {...props}
      className={styles.field!}
      value={value}
      onChange={key => {
        if (key === null) return
        noteChange(props.name)
        onChange(key as Value)
      }}
      {...(error && { isInvalid: true })}
      placeholder={placeholder ?? '—'}
    >
      {label && <Label className={styles.label!}>{label}</Label>}
      <Button className={styles.selectButton!}>
        <SelectValue />
        <span aria-hidden="true" className={styles.arrow!}>
          <Icon name="down" />
        </span>
      </Button>
      {help && (
        <Text slot="description" className={styles.help!}>
          {help}
        </Text>
      )}
      <FieldError className={styles.error!}>{error}</FieldError>
      <Popover className={styles.popover!}>
        <ListBox className={styles.options!}>
          {options.map(option => (
            <ListBoxItem
              key={option.value}
              id={option.value}
              textValue={option.label}
              isDisabled={option.isDisabled ?? false}
              className={styles.option!}
            >
              <Text slot="label">{option.label}</Text>
              {option.help && (
                <Text slot="description" className={styles.optionHelp!}>
                  {option.help}
                </Text>
              )}
            </ListBoxItem>
          ))}
        </ListBox>
      </Popover>
    </AriaSelect>
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
      className={styles.check!}
    >
      {({ isIndeterminate }) => (
        <>
          <span className={styles.box!} aria-hidden="true">
            {isIndeterminate ? '–' : <Icon name="check" />}
          </span>
          {children}
        </>
      )}
    </AriaCheckbox>
  )
  if (!props.name) return box
  return (
    <div className={styles.explained!}>
      {box}
      {help && <p className={styles.help!}>{help}</p>}
      <Fault name={props.name} />
    </div>
  )
}

/** What is wrong with a field that shows no error by itself. */
export function Fault({ name }: { name: string | undefined }) {
  const errors = useContext(FormValidationContext)[name ?? '']
  if (!errors?.length) return null
  return (
    <p className={styles.error!} role="alert">
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
      className={look ? `${styles.group} ${styles[look]}` : styles.group!}
    >
      {legend && <legend className={styles.label!}>{legend}</legend>}
      {children}
      {help && <p className={styles.help!}>{help}</p>}
      <Fault name={name} />
    </fieldset>
  )
}
