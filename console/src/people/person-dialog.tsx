import { KithError, type PersonBody } from '@kith/client'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useSendOnce } from '../app/send-once.ts'
import { personAddress } from '../person/person-address.ts'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { faultAt, otherFaults } from './field-faults.ts'
import { messages } from './messages.ts'
import styles from './people.module.css'

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
  const queryClient = useQueryClient()
  const [values, setValues] = useState<Partial<Record<Field, string>>>({})
  const sendOnce = useSendOnce()
  const { mutate, isPending, error } = useMutation({
    mutationFn: (body: PersonBody) => sendOnce(body, idempotencyKey => client.people.create(body, { idempotencyKey })),
    onSuccess: async person => {
      queryClient.invalidateQueries({ queryKey: ['people'] })
      await navigate(personAddress(person))
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const given = fields.map(field => [field, values[field]?.trim()]).filter(([, value]) => value)
    mutate(Object.fromEntries(given) as PersonBody)
  }
  const isTaken = error instanceof KithError && error.code === 'duplicate_entry' && error.details.length === 0
  const field = (name: Field, label: string, help?: string) => (
    <TextField
      label={label}
      help={help}
      value={values[name] ?? ''}
      onChange={value => setValues({ ...values, [name]: value })}
      error={name === 'external_id' && isTaken ? error.message : faultAt(error, `/${name}`)}
      autoFocus={name === 'first_name'}
      autoComplete="off"
    />
  )
  return (
    <Dialog title={texts.newPerson} isOpen onClose={onClose}>
      <form onSubmit={submit} className={styles.form!}>
        <div className={styles.pair!}>
          {field('first_name', texts.firstName)}
          {field('last_name', texts.lastName)}
        </div>
        {field('email', texts.email)}
        <div className={styles.pair!}>
          {field('mobile_prefix', texts.mobilePrefix)}
          {field('mobile_number', texts.mobileNumber)}
        </div>
        {field('language', texts.language, texts.languageHelp)}
        {field('external_id', texts.externalId, texts.externalIdHelp)}
        {!isTaken &&
          otherFaults(
            error,
            fields.map(name => `/${name}`),
          ) && <Problem error={error} />}
        <Actions>
          <Button onPress={onClose}>{texts.cancel}</Button>
          <Button look="primary" type="submit" isPending={isPending}>
            {texts.create}
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}
