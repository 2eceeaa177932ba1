import { type KeyboardEvent, useState } from 'react'
import { ComboBox as AriaComboBox, Button, Input, ListBox, ListBoxItem, Popover } from 'react-aria-components'
import styles from './field.module.css'
import { Icon } from './icon.tsx'
import { useNoteChange } from './note-change.ts'

export type Choice = { name: string; label: string }

/** More choices than a person reads. Typing narrows them. */
const maxShown = 100

/** Chooses by typing a part of a name, or from the list. Enter and Tab choose the first match, unless the arrow keys chose another. */
export function ComboBox({
  label,
  placeholder,
  choices,
  value,
  onChange,
}: {
  label: string
  placeholder: string
  choices: readonly Choice[]
  value: string
  onChange(name: string): void
}) {
  const noteChange = useNoteChange()
  const chosen = choices.find(({ name }) => name === value)
  const text = chosen?.label ?? value
  const [typed, setTyped] = useState<string>()
  const words = (typed ?? text).trim().toLowerCase()
  const isNarrowed = typed !== undefined && typed !== text
  const isMatch = (choice: Choice) =>
    choice.label.toLowerCase().includes(words) || choice.name.toLowerCase().includes(words)
  const shown = (isNarrowed ? choices.filter(isMatch) : choices).slice(0, maxShown)
  const first = isNarrowed && words !== '' ? shown[0]?.name : undefined
  const choose = (name: string) => {
    setTyped(undefined)
    noteChange()
    onChange(name)
  }
  const chooseFirst = (event: KeyboardEvent) => {
    const isChosenByArrows = event.currentTarget.querySelector('[aria-activedescendant]') !== null
    if (first === undefined || isChosenByArrows || (event.key !== 'Enter' && event.key !== 'Tab')) return
    // Enter does not send the form around the field. Tab goes on to the next field.
    if (event.key === 'Enter') event.preventDefault()
    event.stopPropagation()
    choose(first)
  }
  return (
    // React Aria takes back what was typed on Enter and Tab if no option has the focus, so these keys are handled before it.
    <div className={styles.field} onKeyDownCapture={chooseFirst}>
      <AriaComboBox
        aria-label={label}
        className={styles.combo}
        menuTrigger="focus"
        items={shown}
        inputValue={typed ?? text}
        onInputChange={setTyped}
        value={chosen ? value : null}
        onChange={key => (key === null ? setTyped(undefined) : choose(String(key)))}
        onBlur={() => setTyped(undefined)}
      >
        <Input className={styles.input} placeholder={placeholder} />
        <Button className={styles.comboButton}>
          <Icon name="down" />
        </Button>
        <Popover className={styles.popover}>
          <ListBox className={first === undefined ? styles.options : `${styles.options} ${styles.narrowed}`}>
            {({ name, label }: Choice) => (
              <ListBoxItem id={name} textValue={label} className={styles.option}>
                {label}
              </ListBoxItem>
            )}
          </ListBox>
        </Popover>
      </AriaComboBox>
    </div>
  )
}
