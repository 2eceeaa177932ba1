import type { ReactNode } from 'react'
import {
  Checkbox as AriaCheckbox,
  type CheckboxProps as AriaCheckboxProps,
  Select as AriaSelect,
  TextField as AriaTextField,
  type TextFieldProps as AriaTextFieldProps,
  Button,
  FieldError,
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
  /** The reason why the value is refused. */
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
        noteChange()
        onChange?.(text)
      }}
      isInvalid={Boolean(error) || props.isInvalid === true}
      // Otherwise an error of the service would keep the form from being sent again.
      validationBehavior={error ? 'aria' : 'native'}
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
        noteChange()
        onChange(key as Value)
      }}
      isInvalid={Boolean(error)}
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

export function Checkbox({
  children,
  onChange,
  ...props
}: Omit<AriaCheckboxProps, 'className' | 'style' | 'children'> & { children?: ReactNode }) {
  const noteChange = useNoteChange()
  return (
    <AriaCheckbox
      {...props}
      onChange={isSelected => {
        noteChange()
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
}
