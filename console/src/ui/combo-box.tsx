import { type KeyboardEvent, useContext, useState } from 'react'
import {
  ComboBox as AriaComboBox,
  Button,
  ComboBoxStateContext,
  FieldError,
  Input,
  Label,
  ListBox,
  ListBoxItem,
  Popover,
} from 'react-aria-components'
import styles from './field.module.css'
import { Icon } from './icon.tsx'
import { useNoteChange } from './note-change.ts'

export type Choice = { name: string; label: string }

/** The maximum number of shown choices. Typing narrows them. */
const maxShown = 100

type ComboBoxProps = {
  label: string
  /** Whether the label is visible. Otherwise the surroundings name the field. */
  isLabelShown?: boolean
  /** The name by which a refusal of the form finds the field. */
  name?: string
  placeholder: string
  choices: readonly Choice[]
  value: string
  onChange(name: string): void
}

/** Chooses by typing a part of a name, or from the list. Enter and Tab choose the first match, unless the arrow keys chose another. */
export function ComboBox({ label, isLabelShown = false, name, placeholder, choices, value, onChange }: ComboBoxProps) {
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
  const choose = (chosenName: string) => {
    setTyped(undefined)
    // Escape chooses the current value again.
    if (chosenName === value) return
    noteChange(name)
    onChange(chosenName)
  }
  const chooseFirst = (event: KeyboardEvent) => {
    const isChosenByArrows = event.currentTarget.querySelector('[aria-activedescendant]') !== null
    if (first === undefined || isChosenByArrows || (event.key !== 'Enter' && event.key !== 'Tab')) return
    // Enter must not submit the form around the field. Tab continues to the next field.
    if (event.key === 'Enter') event.preventDefault()
    event.stopPropagation()
    choose(first)
  }
  return (
    // On Enter and Tab, React Aria discards the typed text if no option has the focus, so these keys are handled first.
    <div className="column tight" onKeyDownCapture={chooseFirst}>
      <AriaComboBox
        {...(!isLabelShown && { 'aria-label': label })}
        {...(name && { name })}
        className="column tight"
        menuTrigger="manual"
        items={shown}
        inputValue={typed ?? text}
        onInputChange={setTyped}
        value={chosen ? value : null}
        onChange={key => (key === null ? setTyped(undefined) : choose(String(key)))}
        onBlur={() => setTyped(undefined)}
      >
        {isLabelShown && <Label className={styles.label}>{label}</Label>}
        <div className={styles.combo}>
          <ChoiceInput placeholder={placeholder} />
          <Button className={styles.comboButton}>
            <Icon name="down" />
          </Button>
        </div>
        <FieldError className={styles.error} />
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

/**
 * A click and typing open the list. The focus alone does not open it, because the list would hide why the choice was
 * refused, and closes when the page scrolls to its field. React Aria would also reopen it after Escape, when the typed
 * text becomes the chosen one.
 */
function ChoiceInput({ placeholder }: { placeholder: string }) {
  const state = useContext(ComboBoxStateContext)
  return (
    <Input
      className={styles.input}
      placeholder={placeholder}
      onClick={() => state?.open(null, 'manual')}
      onInput={() => state?.open(null, 'input')}
      // The text is selected on focus, so that typing replaces it.
      onFocus={event => event.currentTarget.select()}
    />
  )
}
