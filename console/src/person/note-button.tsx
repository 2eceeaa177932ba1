import type { Definitions, Stack } from '@kith/client'
import { useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { mayUse } from '../app/field-rights.ts'
import { useShortcut } from '../app/keys.tsx'
import { useMessages } from '../app/language.tsx'
import { useScope, useSession } from '../app/session.tsx'
import { attributesOf, schemaQuery, useDefinitions } from '../entity/schema.ts'
import { historyKey } from '../history/history.tsx'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { FormDialog } from '../ui/form.tsx'
import { glanceMessages } from './glance-messages.ts'

/**
 * The stack of notes, found like in POST /v1/schema/notes: erased with the person, and with a text. Undefined if the
 * organization has none yet.
 */
export const notesOf = (definitions: Definitions) =>
  definitions.stacks.find(({ key, erased_with }) => {
    const text = attributesOf(definitions, key).get('text')
    return erased_with !== null && text?.type === 'text' && text.state === 'active'
  })

/** Whether the session may write notes. A role can open the stack of notes only after its creation. */
function useMayNote(): boolean {
  const { fields } = useSession()
  const notes = notesOf(useDefinitions().definitions)
  const mayWrite = useScope('records:write')
  if (!mayWrite) return false
  return notes ? mayUse('write', notes.key, 'attribute_values.text') : !fields
}

type NoteProps = { id: string; name: string }

/** Writes a note about a person, by the button or the key `n`. */
export function NoteButton(props: NoteProps) {
  return useMayNote() ? <WithKey {...props} /> : null
}

function WithKey(props: NoteProps) {
  const texts = useMessages(glanceMessages)
  const [isOpen, setOpen] = useState(false)
  useShortcut('n', texts.writeNote, () => setOpen(true))
  return (
    <>
      <Button onPress={() => setOpen(true)} aria-keyshortcuts="n">
        {texts.note}
      </Button>
      {isOpen && <NoteDialog {...props} onClose={() => setOpen(false)} />}
    </>
  )
}

function NoteDialog({ id, name, onClose }: NoteProps & { onClose: () => void }) {
  const texts = useMessages(glanceMessages)
  const session = useSession()
  const { definitions } = useDefinitions()
  const [text, setText] = useState('')
  const write = useWrite(
    async (text: string, idempotencyKey) => {
      const { key, erased_with } = notesOf(definitions) ?? ((await client.request('POST', '/v1/schema/notes')) as Stack)
      const mayName = mayUse('write', key, 'attribute_values.author')
      const attribute_values = { [erased_with!]: { id }, text, ...(mayName && { author: session.name }) }
      return client.stack(key).create({ attribute_values }, { idempotencyKey })
    },
    {
      refresh: [schemaQuery.queryKey, historyKey('people', id), ['entities', 'people', 'related', id]],
      onSuccess: onClose,
    },
  )
  const submit = () => text.trim() !== '' && write.mutate(text)
  return (
    <FormDialog
      title={texts.noteTitle(name)}
      onSubmit={submit}
      write={write}
      submit={write.isPending ? `${texts.saving}…` : texts.save}
      onClose={onClose}
    >
      <TextField
        label={texts.text}
        name="/attribute_values/text"
        help={texts.noteHelp}
        value={text}
        onChange={setText}
        onKeyDown={({ key, ctrlKey, metaKey }) => key === 'Enter' && (ctrlKey || metaKey) && submit()}
        rows={6}
        maxLength={65_536}
        isRequired
        autoFocus
      />
    </FormDialog>
  )
}
