import { isKithError } from '@kith/client'
import { useBlocker } from '@tanstack/react-router'
import type { FormEvent, ReactNode } from 'react'
import { useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Actions } from '../ui/dialog.tsx'
import { Notice, Problem } from '../ui/notice.tsx'
import { FieldEditor } from './field-editor.tsx'
import type { Field } from './fields.ts'
import styles from './form.module.css'
import { messages } from './messages.ts'
import type { Conflict, Edit } from './use-edit.ts'
import { Value } from './value.tsx'

type EditFormProps = {
  /** The name of the form, for screen readers. */
  label: string
  edit: Edit
  fields: readonly Field[]
  /** Shown below the fields, such as a way to add one. */
  children?: ReactNode
}

/** The form of an edit: the fields, what was refused, and the choice where somebody else changed the same values. */
export function EditForm({ label, edit, fields, children }: EditFormProps) {
  const texts = useMessages(messages)
  const { state } = edit
  useBlocker({
    shouldBlockFn: () => edit.isDirty && !window.confirm(texts.unsaved),
    enableBeforeUnload: () => edit.isDirty,
  })
  if (!state) return null
  const submit = (event: FormEvent) => {
    event.preventDefault()
    edit.save()
  }
  const errorOf = (field: Field) => {
    const fault = state.faults.get(field.path)
    return fault ? texts.faults[fault] : edit.refusalsOf(field)
  }
  const isGone = isKithError(state.error, 'not_found')
  const isUndecided = state.conflicts.some(({ choice }) => choice === undefined)
  return (
    <form className={styles.form!} aria-label={label} onSubmit={submit} noValidate>
      {state.conflicts.length > 0 && <Conflicts conflicts={state.conflicts} onChoose={edit.choose} />}
      <div className={styles.fields!}>
        {fields.map((field, index) => (
          <FieldEditor
            key={field.path}
            field={field}
            draft={edit.draft(field)}
            onChange={draft => edit.set(field, draft)}
            error={errorOf(field)}
            autoFocus={index === 0}
          />
        ))}
      </div>
      {children}
      {isGone ? (
        <Notice kind="error" title={texts.gone} />
      ) : (
        state.error !== undefined && <Problem error={state.error} />
      )}
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
  onChoose(path: string, choice: 'mine' | 'theirs'): void
}

/** Shows for each value what it was, what somebody else wrote and what was typed here, and asks which one stays. */
export function Conflicts({ conflicts, onChoose }: ConflictsProps) {
  const texts = useMessages(messages)
  return (
    <Notice kind="caution" title={texts.conflict}>
      <p>{texts.conflictAdvice}</p>
      <div className={styles.conflicts!}>
        {conflicts.map(({ field, before, theirs, mine, choice }) => (
          <fieldset key={field.path} className={styles.conflict!}>
            <legend>{field.label}</legend>
            <div className={styles.was!}>
              <span className={styles.label!}>{texts.was}</span>
              <Value value={before} />
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
