import { useState } from 'react'
import { Button, ComboBox, Input, ListBox, ListBoxItem, Popover } from 'react-aria-components'
import { useMessages } from '../app/language.tsx'
import fieldStyles from '../ui/field.module.css'
import { Icon } from '../ui/icon.tsx'
import styles from './filter.module.css'
import { messages } from './messages.ts'

export type FieldChoice = { name: string; label: string }

/** More choices than a person reads. Typing narrows them. */
const maxShown = 100

/** Chooses a field by typing a part of its name, or from the list. */
export function FieldPicker({
  choices,
  value,
  onChange,
}: {
  choices: readonly FieldChoice[]
  value: string
  onChange(name: string): void
}) {
  const texts = useMessages(messages)
  const chosen = choices.find(({ name }) => name === value)
  const label = chosen?.label ?? value
  const [typed, setTyped] = useState<string>()
  const words = (typed ?? '').toLowerCase()
  const isMatch = (choice: FieldChoice) => choice.label.toLowerCase().includes(words) || choice.name.includes(words)
  const shown = (typed === undefined || typed === label ? choices : choices.filter(isMatch)).slice(0, maxShown)
  return (
    <ComboBox
      aria-label={texts.field}
      className={styles.picker!}
      menuTrigger="focus"
      items={shown}
      inputValue={typed ?? label}
      onInputChange={setTyped}
      value={chosen ? value : null}
      onChange={key => {
        setTyped(undefined)
        if (key !== null) onChange(String(key))
      }}
      onBlur={() => setTyped(undefined)}
    >
      <Input className={fieldStyles.input!} placeholder={texts.chooseField} />
      <Button className={styles.pickerButton!}>
        <Icon name="down" />
      </Button>
      <Popover className={fieldStyles.popover!}>
        <ListBox className={fieldStyles.options!}>
          {({ name, label }: FieldChoice) => (
            <ListBoxItem id={name} textValue={label} className={fieldStyles.option!}>
              {label}
            </ListBoxItem>
          )}
        </ListBox>
      </Popover>
    </ComboBox>
  )
}
