import { isKithError } from '@kith/client'
import { useBlocker } from '@tanstack/react-router'
import { type FormEvent, type ReactNode, useEffect, useRef } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Actions } from '../ui/dialog.tsx'
import { Notice, Problem } from '../ui/notice.tsx'
import { FieldEditor, PlaceholderCheckbox } from './field-editor.tsx'
import type { DraftFault, Field } from './fields.ts'
import styles from './form.module.css'
import { messages } from './messages.ts'
import type { Conflict, Edit } from './use-edit.ts'
import { useFieldErrors } from './use-field-errors.ts'
import { Value } from './value.tsx'

type EditFormProps = {
  edit: Edit
  /** The name of the form, for screen readers. */
  label?: string
  /** Whether the form stands in place of the one value that it edits, beside the name of the value. Escape closes it. */
  isInPlace?: boolean
  /** Shown below the fields, such as a way to add one. */
  children?: ReactNode
}

const noFields: readonly Field[] = []
const noFaults: ReadonlyMap<string, DraftFault> = new Map()

/** The form of an edit: the fields, what was refused, and the choice where somebody else changed the same values. */
export function EditForm({ edit, label, isInPlace = false, children }: EditFormProps) {
  const texts = useMessages(messages)
  const { state } = edit
  const { errorOf, hasOthers } = useFieldErrors(state?.fields ?? noFields, state?.faults ?? noFaults, state?.error)
  useBlocker({
    shouldBlockFn: () => edit.isDirty && !window.confirm(texts.unsaved),
    enableBeforeUnload: () => edit.isDirty,
  })
  if (!state) return null
  const submit = (event: FormEvent) => {
    event.preventDefault()
    edit.save()
  }
  const isGone = isKithError(state.error, 'not_found')
  const isUndecided = state.conflicts.some(({ choice }) => choice === undefined)
  return (
    <form
      className={`${styles.form} ${isInPlace ? styles.inPlace : ''}`}
      aria-label={label}
      onSubmit={submit}
      onKeyDown={event => isInPlace && event.key === 'Escape' && edit.cancel()}
      noValidate
    >
      <div className={styles.fields!}>
        {state.fields.map((field, index) => (
          <FieldEditor
            key={field.path}
            field={field}
            isLabelHidden={isInPlace}
            draft={edit.draft(field)}
            onChange={draft => edit.set(field, draft)}
            error={errorOf(field)}
            autoFocus={index === 0}
          />
        ))}
      </div>
      <PlaceholderCheckbox fields={state.fields} isSelected={state.makesTargets} onChange={edit.setMakesTargets} />
      {children}
      {state.conflicts.length > 0 && <Conflicts key={state.base.version} {...state} onChoose={edit.choose} />}
      {isGone && <Notice kind="error" title={texts.gone} />}
      {hasOthers && !isGone && <Problem error={state.error} />}
      <Actions>
        <Button onPress={edit.cancel}>{texts.cancel}</Button>
        <Button type="submit" look="primary" isPending={state.isSaving} isDisabled={isUndecided}>
          {state.isSaving ? `${texts.saving}…` : texts.save}
        </Button>
      </Actions>
    </form>
  )
}

type ConflictsProps = {
  conflicts: readonly Conflict[]
  otherChange?: { actor: string; at: string } | undefined
  onChoose(path: string, choice: 'mine' | 'theirs'): void
}

/** Shows for each value what it was, what somebody else wrote and what was typed here, and asks which one stays. */
function Conflicts({ conflicts, otherChange, onChoose }: ConflictsProps) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const choices = useRef<HTMLDivElement>(null)
  // The conflict may be out of sight of the field or the button that saved.
  useEffect(() => choices.current?.querySelector('input')?.focus(), [])
  return (
    <Notice kind="caution" title={texts.conflict}>
      {otherChange && <p>{texts.changedBy(otherChange.actor, formats.exactTime(otherChange.at))}</p>}
      <p>{texts.conflictAdvice}</p>
      <div className={styles.conflicts!} ref={choices}>
        {conflicts.map(({ field, before, theirs, mine, choice }) => (
          <fieldset key={field.path} className={styles.conflict!}>
            <legend>{field.label}</legend>
            <div className={styles.was!}>
              <span className={styles.label!}>{texts.was}</span>
              <span>
                <Value value={before} />
              </span>
            </div>
            {(['theirs', 'mine'] as const).map(side => (
              <label key={side} className={styles.choice!}>
                <input
                  type="radio"
                  name={field.path}
                  checked={choice === side}
                  onChange={() => onChoose(field.path, side)}
                />
                <span className={styles.label!}>{texts[side]}</span>
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
