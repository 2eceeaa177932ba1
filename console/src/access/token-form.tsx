import type { Scope } from '@kith/client'
import { type FormEvent, useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useSession } from '../app/session.tsx'
import { Button } from '../ui/button.tsx'
import { Select, TextField } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { Section } from '../ui/page.tsx'
import { SecretDialog } from '../ui/secret-dialog.tsx'
import styles from './access.module.css'
import { messages } from './messages.ts'
import { ScopeChoice } from './scope-choice.tsx'

/** Makes a token, which is shown once. */
export function TokenForm() {
  const texts = useMessages(messages)
  const session = useSession()
  const [name, setName] = useState(session.name)
  const [scopes, setScopes] = useState<Scope[]>([])
  const [seconds, setSeconds] = useState('3600')
  const [token, setToken] = useState<string | null>(null)
  const [error, setError] = useState<unknown>()
  const [isPending, setPending] = useState(false)
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    if (isPending) return
    setPending(true)
    setError(undefined)
    try {
      const made = await client.access.createToken({ name: name.trim(), scopes, expires_in: Number(seconds) })
      setToken(made.token)
    } catch (error) {
      setError(error)
    }
    setPending(false)
  }
  return (
    <Section title={texts.newToken}>
      <p className={styles.muted!}>{texts.tokensAdvice}</p>
      <form className={styles.form!} onSubmit={submit}>
        <TextField label={texts.name} help={texts.tokenNameHelp} isRequired value={name} onChange={setName} />
        <Select
          label={texts.lifetime}
          options={[
            { value: '3600', label: texts.hour },
            { value: '14400', label: texts.fourHours },
          ]}
          value={seconds}
          onChange={setSeconds}
        />
        <ScopeChoice scopes={scopes} onChange={setScopes} />
        {error !== undefined && <Problem error={error} />}
        {scopes.length === 0 && <p className={styles.muted!}>{texts.scopesMissing}</p>}
        <div>
          <Button type="submit" look="primary" isDisabled={scopes.length === 0}>
            {texts.create}
          </Button>
        </div>
      </form>
      {token !== null && (
        <SecretDialog
          title={texts.tokenTitle}
          advice={texts.tokenAdvice}
          values={[[texts.token, token]]}
          onClose={() => setToken(null)}
        />
      )}
    </Section>
  )
}
