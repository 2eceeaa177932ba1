import { useEffect, useState } from 'react'
import { Autocomplete, Header, Input, ListBox, ListBoxItem, ListBoxSection, SearchField } from 'react-aria-components'
import { useMessages } from '../app/language.tsx'
import { Dialog } from '../ui/dialog.tsx'
import fieldStyles from '../ui/field.module.css'
import { Problem } from '../ui/page.tsx'
import { type SearchChoice, useChoices } from './choices.ts'
import { messages } from './messages.ts'
import styles from './search.module.css'

/** One search for people, records, segments, pages and actions. Arrow keys choose, Enter opens. */
export default function SearchDialog({ onClose }: { onClose(): void }) {
  const texts = useMessages(messages)
  const [typed, setTyped] = useState('')
  const { groups, error, isSearching } = useChoices(typed)
  const isEmpty = groups.length === 0 && !error
  const choices = groups.flatMap(({ choices }) => choices)
  const [isEntered, setEntered] = useState(false)
  const open = (choice: SearchChoice | undefined) => {
    onClose()
    choice?.go()
  }
  // Enter opens the first match of any kind, once the service has responded.
  useEffect(() => {
    if (!isEntered || isSearching) return
    setEntered(false)
    if (choices[0]) open(choices[0])
  })
  return (
    <Dialog title={texts.title} onClose={onClose} hasDraft={false}>
      <Autocomplete inputValue={typed} onInputChange={setTyped} disableAutoFocusFirst>
        <SearchField aria-label={texts.title} autoFocus className={styles.field}>
          <Input
            className={fieldStyles.input}
            placeholder={texts.placeholder}
            spellCheck={false}
            onKeyDown={({ key, currentTarget }) =>
              setEntered(key === 'Enter' && typed.trim() !== '' && !currentTarget.getAttribute('aria-activedescendant'))
            }
          />
        </SearchField>
        <ListBox
          aria-label={texts.title}
          className={styles.list}
          items={groups}
          selectionMode="none"
          onAction={id => open(choices.find(choice => choice.id === id))}
        >
          {({ key, title, choices }) => (
            <ListBoxSection id={key} aria-label={title}>
              <Header className={styles.head}>{title}</Header>
              {choices.map(({ id, label, detail }) => (
                <ListBoxItem key={id} id={id} textValue={label} className={fieldStyles.option}>
                  <bdi>{label}</bdi>
                  {detail && <span className={fieldStyles.optionHelp}>{detail}</span>}
                </ListBoxItem>
              ))}
            </ListBoxSection>
          )}
        </ListBox>
      </Autocomplete>
      {error && <Problem error={error} />}
      <p role="status" className={isEmpty || isSearching ? 'muted' : 'visually-hidden'}>
        {isSearching ? `${texts.searching}…` : isEmpty && (typed.trim() === '' ? texts.begin : texts.nothing)}
      </p>
    </Dialog>
  )
}
