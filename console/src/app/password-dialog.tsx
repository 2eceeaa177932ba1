import { useState } from 'react'
import { CloseAction, Dialog } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { Notice } from '../ui/page.tsx'
import { useWrite } from './client.ts'
import { useMessages } from './language.tsx'
import { messages } from './messages.ts'
import { isRepeated, NewPasswordFields, noPassword } from './new-password.tsx'
import { requestConsole, useSession } from './session.tsx'

/** Changes the password of the account that is signed in. */
export default function PasswordDialog({ onClose }: { onClose: () => void }) {
  const texts = useMessages(messages)
  const { name } = useSession()
  const [current_password, setCurrent] = useState('')
  const [chosen, setChosen] = useState(noPassword)
  const write = useWrite((body: object) => requestConsole<true>('POST', 'password', body))
  return (
    <Dialog title={texts.changePassword} onClose={onClose} hasDraft={!write.isSuccess}>
      {write.isSuccess ? (
        <>
          <Notice kind="success" title={texts.passwordChanged} />
          <CloseAction onClose={onClose} />
        </>
      ) : (
        <Form
          onSubmit={() => write.mutate({ current_password, new_password: chosen.password })}
          write={write}
          submit={texts.changePassword}
          isDisabled={!isRepeated(chosen)}
          onCancel={onClose}
        >
          <p>{texts.passwordAdvice}</p>
          {/* A password manager stores the password under this name. */}
          <input type="hidden" name="username" autoComplete="username" value={name} readOnly />
          <TextField
            label={texts.currentPassword}
            name="/current_password"
            type="password"
            autoComplete="current-password"
            isRequired
            autoFocus
            value={current_password}
            onChange={setCurrent}
          />
          <NewPasswordFields name="/new_password" label={texts.newPassword} value={chosen} onChange={setChosen} />
        </Form>
      )}
    </Dialog>
  )
}
