import { TextField } from '../ui/field.tsx'
import { useMessages } from './language.tsx'
import { messages } from './messages.ts'

/** A new password and its repetition. */
export type NewPassword = { password: string; repeated: string }

export const noPassword: NewPassword = { password: '', repeated: '' }

type FieldsProps = { name: string; label: string; value: NewPassword; onChange: (value: NewPassword) => void }

/** The two fields for a new password. `name` is the path of the first field in the request. */
export function NewPasswordFields({ name, label, value, onChange }: FieldsProps) {
  const texts = useMessages(messages)
  return (
    <>
      <TextField
        label={label}
        help={texts.passwordHelp}
        name={name}
        type="password"
        autoComplete="new-password"
        isRequired
        value={value.password}
        onChange={password => onChange({ ...value, password })}
      />
      <TextField
        label={texts.repeat}
        name="repeated"
        type="password"
        autoComplete="new-password"
        isRequired
        {...(isDifferent(value) && { error: texts.isDifferent })}
        value={value.repeated}
        onChange={repeated => onChange({ ...value, repeated })}
      />
    </>
  )
}

/** Whether the repetition differs from the password, and is not only incomplete. */
const isDifferent = ({ password, repeated }: NewPassword) => !password.startsWith(repeated)

export const isRepeated = ({ password, repeated }: NewPassword): boolean => password !== '' && password === repeated
