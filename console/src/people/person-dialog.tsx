import type { PersonBody } from '@kith/client'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useWrite } from '../app/write.ts'
import { personAddress } from '../person/person-address.ts'
import { Dialog } from '../ui/dialog.tsx'
import { FieldGroup, TextField } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { messages } from './messages.ts'

const fields = [
  'first_name',
  'last_name',
  'email',
  'mobile_prefix',
  'mobile_number',
  'language',
  'external_id',
] as const
type Field = (typeof fields)[number]

/** Creates a person, and opens their page. */
export default function PersonDialog({ onClose }: { onClose(): void }) {
  const texts = useMessages(messages)
  const navigate = useNavigate()
  const [values, setValues] = useState<Partial<Record<Field, string>>>({})
  const create = useWrite((body: PersonBody, idempotencyKey) => client.people.create(body, { idempotencyKey }), {
    refresh: [['people']],
    onSuccess: person => navigate(personAddress(person)),
  })
  const given = fields.map(field => [field, values[field]?.trim()]).filter(([, value]) => value)
  const field = (name: Field, label: string, help?: string) => (
    <TextField
      label={label}
      help={help}
      name={`/${name}`}
      value={values[name] ?? ''}
      onChange={value => setValues({ ...values, [name]: value })}
      autoFocus={name === 'first_name'}
      autoComplete="off"
    />
  )
  return (
    <Dialog title={texts.newPerson} isOpen onClose={onClose}>
      <Form
        onSubmit={() => create.mutate(Object.fromEntries(given) as PersonBody)}
        submit={texts.create}
        onCancel={onClose}
        write={create}
      >
        <FieldGroup look="grid">
          {field('first_name', texts.firstName)}
          {field('last_name', texts.lastName)}
        </FieldGroup>
        {field('email', texts.email)}
        <FieldGroup look="grid">
          {field('mobile_prefix', texts.mobilePrefix)}
          {field('mobile_number', texts.mobileNumber)}
        </FieldGroup>
        {field('language', texts.language, texts.languageHelp)}
        {field('external_id', texts.externalId, texts.externalIdHelp)}
      </Form>
    </Dialog>
  )
}
