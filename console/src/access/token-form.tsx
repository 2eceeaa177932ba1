import type { ApiTokenBody, Scope } from '@kith/client'
import { useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useSession } from '../app/session.tsx'
import { useWrite } from '../app/write.ts'
import { TextField } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { Section } from '../ui/page.tsx'
import { SecretDialog } from '../ui/secret-dialog.tsx'
import { Select } from '../ui/select.tsx'
import styles from './access.module.css'
import { messages } from './messages.ts'
import { tokensQuery } from './queries.ts'
import { RoleChoice } from './role-choice.tsx'
import { ScopeChoice } from './scope-choice.tsx'

/** Makes a token, which is shown once. */
export function TokenForm() {
  const texts = useMessages(messages)
  const session = useSession()
  const [name, setName] = useState(session.name)
  const [scopes, setScopes] = useState<Scope[]>([])
  const [role, setRole] = useState('')
  const [seconds, setSeconds] = useState('3600')
  const create = useWrite((body: ApiTokenBody) => client.access.createToken(body), { refresh: [tokensQuery.queryKey] })
  return (
    <Section title={texts.newToken}>
      <p className={styles.muted}>{texts.tokensAdvice}</p>
      <Form
        onSubmit={() =>
          create.mutate({ name: name.trim(), scopes, expires_in: Number(seconds), ...(role && { role }) })
        }
        write={create}
        submit={texts.create}
        isDisabled={scopes.length === 0}
      >
        <TextField
          label={texts.name}
          help={texts.tokenNameHelp}
          name="/name"
          isRequired
          value={name}
          onChange={setName}
        />
        <Select
          label={texts.lifetime}
          options={[
            { value: '3600', label: texts.hour },
            { value: '14400', label: texts.fourHours },
          ]}
          value={seconds}
          onChange={setSeconds}
        />
        <RoleChoice role={role} onChange={setRole} />
        <ScopeChoice scopes={scopes} onChange={setScopes} />
      </Form>
      {create.data && (
        <SecretDialog
          title={texts.tokenTitle}
          advice={texts.tokenAdvice}
          values={[[texts.token, create.data.token]]}
          onClose={create.reset}
        />
      )}
    </Section>
  )
}
