import { isKithError } from '@kith/client'
import { type FormEvent, type ReactNode, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { Form as AriaForm } from 'react-aria-components'
import { useMessages } from '../app/language.tsx'
import { SessionError } from '../app/session.tsx'
import { useServiceTexts } from '../app/use-service-texts.ts'
import { Button } from './button.tsx'
import { Actions, Dialog } from './dialog.tsx'
import styles from './field.module.css'
import { messages } from './messages.ts'
import { NoteChangeContext, useNoteChange } from './note-change.ts'
import { Problem } from './page.tsx'
import { useUnsaved } from './use-unsaved.ts'

export type Faults = Readonly<Record<string, string>>

export type FormProps = {
  onSubmit(): void
  /**
   * The request of the form. Each detail of its refusal is shown at the field whose name is the path or a prefix of the
   * path.
   */
  write?: { error: unknown; isPending: boolean }
  /** Faults that the console finds before the form is sent, by the names of the fields. */
  faults?: Faults
  /** The name of the form, for screen readers. */
  label?: string
  /** The text of the button that submits the form. Without it, the form brings its own buttons. */
  submit?: ReactNode
  look?: 'primary' | 'danger' | 'plain'
  /** Whether the form fills the width, as it always does in a dialog. */
  isWide?: boolean
  isDisabled?: boolean
  /** Whether leaving the page loses typed input. A dialog asks by itself. */
  isUnsaved?: boolean
  onCancel?: (() => void) | undefined
  /** Shown in place of the button that cancels. */
  back?: ReactNode
  /** Further buttons, after the submit button. */
  actions?: ReactNode
  children: ReactNode
}

/** Translates a message of the service, and adds its position inside the value of the field. */
type Place = (inner: string, message: string) => string

type Shown = { byName: Record<string, string[]>; hasOthers: boolean; isNew: boolean }

const nothing: Shown = { byName: {}, hasOthers: false, isNew: false }

/**
 * A form. The names of its fields are JSON Pointers into the body of the request, so that a refusal finds its field.
 */
export function Form({ onSubmit, write, faults, label, submit, look = 'primary', ...props }: FormProps) {
  const { isDisabled = false, isUnsaved = false, isWide, onCancel, back, actions, children } = props
  const error = write?.error
  const texts = useMessages(messages)
  const { language, sentences, translated } = useServiceTexts()
  const form = useRef<HTMLFormElement>(null)
  const [{ byName, hasOthers, isNew }, setShown] = useState(nothing)
  // biome-ignore lint/correctness/useExhaustiveDependencies: `language` and `sentences` are what `translated` depends on
  useLayoutEffect(() => {
    const place: Place = (inner, message) => {
      const said = translated(message) ?? message
      if (inner === '') return said
      return `${/^\d+$/.test(inner) ? texts.valueAt(Number(inner) + 1) : inner}: ${said}`
    }
    const names = [...form.current!.elements].flatMap(element => element.getAttribute('name') ?? [])
    // The longest, most specific name comes first.
    names.sort((one, other) => other.length - one.length)
    setShown(error || faults ? shownOf(error, faults, names, place) : nothing)
  }, [error, faults, texts, language, sentences])
  // biome-ignore lint/correctness/useExhaustiveDependencies: each refusal moves the focus once
  useEffect(() => {
    if (!isNew) return
    form.current?.querySelector<HTMLElement>('[aria-invalid=true], [data-invalid] button')?.focus()
  }, [byName, isNew])
  useUnsaved(() => isUnsaved)
  const noteToDialog = useNoteChange()
  const noteChange = (name?: string) => {
    noteToDialog()
    // React Aria clears errors on blur. The fields below would then move away from the pressed pointer.
    if (name && byName[name]?.length)
      setShown(before => ({ ...before, byName: { ...before.byName, [name]: [] }, isNew: false }))
  }
  const send = (event: FormEvent) => {
    event.preventDefault()
    // In React, events of a dialog inside a form bubble up to the form.
    event.stopPropagation()
    onSubmit()
  }
  return (
    <AriaForm
      ref={form}
      className={styles.form}
      {...(label !== undefined && { 'aria-label': label })}
      validationBehavior="aria"
      data-wide={isWide}
      validationErrors={byName}
      onSubmit={send}
    >
      <NoteChangeContext value={noteChange}>{children}</NoteChangeContext>
      {hasOthers && <Problem error={error} />}
      {submit && (
        <Actions>
          {back}
          {onCancel && <Button onPress={onCancel}>{texts.cancel}</Button>}
          <Button
            type="submit"
            {...(look !== 'plain' && { look })}
            isPending={write?.isPending ?? false}
            isDisabled={isDisabled}
          >
            {submit}
          </Button>
          {actions}
        </Actions>
      )}
    </AriaForm>
  )
}

function shownOf(error: unknown, faults: Faults = {}, names: readonly string[], place: Place): Shown {
  const byName: Record<string, string[]> = Object.fromEntries(
    Object.entries(faults).map(([name, text]) => [name, [text]]),
  )
  const details = isKithError(error) || error instanceof SessionError ? error.details : []
  let hasOthers = Boolean(error) && details.length === 0
  for (const { path, message } of details) {
    const name = names.find(name => path === name || path.startsWith(`${name}/`))
    if (name === undefined) hasOthers = true
    else byName[name] = [...(byName[name] ?? []), place(path.slice(name.length + 1), message)]
  }
  return { byName, hasOthers, isNew: true }
}

type FormDialogProps = FormProps & { title: string; size?: 'wide'; onClose: () => void }

/** A dialog that is a form: submitting or cancelling closes it. */
export function FormDialog({ title, size, onClose, ...form }: FormDialogProps) {
  return (
    <Dialog title={title} onClose={onClose} {...(size && { size })}>
      <Form {...form} onCancel={onClose} />
    </Dialog>
  )
}
