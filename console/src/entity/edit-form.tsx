import { isKithError } from '@kith/client'
import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { type Faults, Form } from '../ui/form.tsx'
import { Notice } from '../ui/page.tsx'
import { FieldEditors, PlaceholderCheckbox } from './field-editor.tsx'
import type { DraftFault, Field } from './fields.ts'
import styles from './form.module.css'
import { type EntityTexts, messages } from './messages.ts'
import type { Conflict, Edit } from './use-edit.ts'
import { Value } from './value.tsx'

type EditFormProps = {
  edit: Edit
  /** The name of the form, for screen readers. */
  label: string
  /** Shown below the fields, such as a way to add one. */
  children?: ReactNode
}

/** The reasons why drafts are invalid, by the names of their fields. */
export const faultTexts = (faults: ReadonlyMap<string, DraftFault>, texts: EntityTexts): Faults =>
  Object.fromEntries(
    [...faults].map(([path, fault]) => [
      path,
      fault.reason === 'json' ? texts.faults.json(fault.words) : texts.faults[fault.reason],
    ]),
  )

/** The form of an edit: the fields, the refusals, and the choices for conflicts with another write. */
export function EditForm({ edit, label, children }: EditFormProps) {
  const texts = useMessages(messages)
  const { state } = edit
  const drafted = state?.faults
  const faults = useMemo(() => drafted && faultTexts(drafted, texts), [drafted, texts])
  if (!state) return null
  const isGone = isKithError(state.error, 'not_found')
  const isUndecided = state.conflicts.some(({ choice }) => choice === undefined)
  return (
    <Form
      label={label}
      onSubmit={edit.save}
      write={{ error: isGone ? undefined : state.error, isPending: state.isSaving }}
      {...(faults && { faults })}
      submit={state.isSaving ? `${texts.saving}…` : texts.save}
      isDisabled={isUndecided}
      isUnsaved={edit.isDirty}
      onCancel={edit.cancel}
    >
      <div className={styles.fields}>
        <FieldEditors fields={state.fields} draftOf={edit.draft} onChange={edit.set} />
      </div>
      <PlaceholderCheckbox fields={state.fields} isSelected={state.makesTargets} onChange={edit.setMakesTargets} />
      {children}
      {state.conflicts.length > 0 && <Conflicts key={state.base.version} {...state} onChoose={edit.choose} />}
      {isGone && <Notice kind="error" title={texts.gone} />}
    </Form>
  )
}

type ConflictsProps = {
  conflicts: readonly Conflict[]
  otherChange?: { actor: string; at: string } | undefined
  onChoose(path: string, choice: 'mine' | 'theirs'): void
}

/**
 * Shows the previous value, the value of the other write and the typed value of each conflict, and asks which one to
 * keep.
 */
function Conflicts({ conflicts, otherChange, onChoose }: ConflictsProps) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const choices = useRef<HTMLDivElement>(null)
  // The conflict may be far from the focused field or button, so it gets the focus.
  useEffect(() => choices.current?.querySelector('input')?.focus(), [])
  return (
    <Notice kind="caution" title={texts.conflict}>
      {otherChange && <p>{texts.changedBy(otherChange.actor, formats.exactTime(otherChange.at))}</p>}
      <p>{texts.conflictAdvice}</p>
      <div className="column" ref={choices}>
        {conflicts.map(({ field, before, theirs, mine, choice }) => (
          <fieldset key={field.path} className={styles.conflict}>
            <legend>{field.label}</legend>
            <div className={styles.was}>
              <span className={styles.label}>{texts.was}</span>
              <span>
                <Value value={before} />
              </span>
            </div>
            {(['theirs', 'mine'] as const).map(side => (
              <label key={side} className={styles.choice}>
                <input
                  type="radio"
                  name={field.path}
                  checked={choice === side}
                  onChange={() => onChoose(field.path, side)}
                />
                <span className={styles.label}>{texts[side]}</span>
                <span>
                  <Value value={side === 'mine' ? mine : theirs} />
                </span>
              </label>
            ))}
          </fieldset>
        ))}
      </div>
    </Notice>
  )
}

type EditButtonProps = {
  edit: Edit
  fields: readonly Field[]
  /** The name of what is edited, for screen readers. */
  name: string
}

/** The button that begins an edit. It regains the focus afterwards. */
export function EditButton({ edit, fields, name }: EditButtonProps) {
  const texts = useMessages(messages)
  const shortName = name.length > 60 ? `${name.slice(0, 60)}…` : name
  return (
    <Button aria-label={`${texts.edit}: ${shortName}`} autoFocus={edit.hasBegun} onPress={() => edit.begin(fields)}>
      {texts.edit}
    </Button>
  )
}

/** Asks for the key of an undeclared value. */
export function NewKey({ isTaken, onAdd }: { isTaken(key: string): boolean; onAdd(key: string): void }) {
  const texts = useMessages(messages)
  const [text, setText] = useState('')
  const key = text.trim()
  const canAdd = key !== '' && !isTaken(key)
  const add = () => {
    onAdd(key)
    setText('')
  }
  return (
    <div className={styles.newKey}>
      <TextField
        label={texts.addValue}
        placeholder={texts.key}
        value={text}
        onChange={setText}
        onKeyDown={event => {
          if (event.key !== 'Enter') return
          // Without this, Enter would submit the form around the field.
          event.preventDefault()
          if (canAdd) add()
        }}
        {...(isTaken(key) && { error: texts.keyTaken })}
      />
      <Button isDisabled={!canAdd} onPress={add}>
        {texts.add}
      </Button>
    </div>
  )
}
