import {
  Select as AriaSelect,
  Button,
  FieldError,
  Label,
  ListBox,
  ListBoxItem,
  Popover,
  SelectValue,
  Text,
} from 'react-aria-components'
import styles from './field.module.css'
import type { Labelled } from './field.tsx'
import { Icon } from './icon.tsx'
import { useNoteChange } from './note-change.ts'

export type Option<Value extends string> = { value: Value; label: string; help?: string; isDisabled?: boolean }

export type SelectProps<Value extends string> = Labelled & {
  /** The options, or the labels of their values. */
  options: readonly Option<Value>[] | Readonly<Record<Value, string>>
  value: Value | null
  onChange(value: Value): void
  name?: string
  placeholder?: string
  'aria-label'?: string
  isDisabled?: boolean
}

const listOf = <Value extends string>(options: SelectProps<Value>['options']) =>
  (Array.isArray(options)
    ? options
    : Object.entries(options).map(([value, label]) => ({ value, label }))) as readonly Option<Value>[]

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
      className="column tight"
      value={value}
      onChange={key => {
        if (key === null) return
        noteChange(props.name)
        onChange(key as Value)
      }}
      {...(error && { isInvalid: true })}
      placeholder={placeholder ?? '—'}
    >
      {label && <Label className={styles.label}>{label}</Label>}
      <Button className={styles.selectButton}>
        <SelectValue />
        <span aria-hidden="true" className={styles.arrow}>
          <Icon name="down" />
        </span>
      </Button>
      {help && (
        <Text slot="description" className="small">
          {help}
        </Text>
      )}
      <FieldError className={styles.error}>{error}</FieldError>
      <Popover className={styles.popover}>
        <ListBox className={styles.options}>
          {listOf(options).map(option => (
            <ListBoxItem
              key={option.value}
              id={option.value}
              textValue={option.label}
              isDisabled={option.isDisabled ?? false}
              className={styles.option}
            >
              <Text slot="label">{option.label}</Text>
              {option.help && (
                <Text slot="description" className={styles.optionHelp}>
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
