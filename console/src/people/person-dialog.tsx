import { KithError, type PersonBody, type ProfileField, profileFields } from '@kith/client'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useSendOnce } from '../app/send-once.ts'
import { plainFields } from '../entity/fields.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { personAddress } from '../person/person-address.ts'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { faultAt, otherFaults } from './field-faults.ts'
import { messages } from './messages.ts'
import styles from './people.module.css'

type Field = ProfileField | 'external_id'

const fields: readonly Field[] = [...plainFields.filter(name => profileFields[name].type !== 'boolean'), 'external_id']
/** The fields that stand beside the one before. */
const pairs: Partial<Record<Field, Field>> = { first_name: 'last_name', mobile_prefix: 'mobile_number' }

/** Creates a person, and opens their page. */
export default function PersonDialog({ onClose }: { onClose(): void }) {
  const texts = useMessages(messages)
  const { fields: labels } = useMessages(entityMessages)
  const help: Partial<Record<Field, string>> = { language: texts.languageHelp, external_id: texts.externalIdHelp }
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
  const field = (name: Field) => (
    <TextField
      key={name}
      label={labels[name]}
      help={help[name]}
      type={name !== 'external_id' && profileFields[name].type === 'date' ? 'date' : 'text'}
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
        {fields.map(name => {
          const beside = pairs[name]
          if (beside)
            return (
              <div key={name} className={styles.pair!}>
                {field(name)}
                {field(beside)}
              </div>
            )
          return Object.values(pairs).includes(name) ? null : field(name)
        })}
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
