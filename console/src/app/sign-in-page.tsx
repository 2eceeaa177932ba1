import { useQuery } from '@tanstack/react-query'
import { useRouter, useSearch } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { Loading, Notice, Problem } from '../ui/page.tsx'
import { useWrite } from './client.ts'
import { useMessages } from './language.tsx'
import { messages } from './messages.ts'
import { messages as passwordMessages } from './password-messages.ts'
import { queryClient } from './query-client.ts'
import { requestConsole, type Session, SessionError, sessionQuery } from './session.tsx'
import { takeSignInCode } from './sign-in-code.ts'
import styles from './sign-in-page.module.css'

type SignInMethods = { issuer: { name: string; start_url: string } | null }

/** Signs in by a one-time code or by credentials, and then shows the page that the person wanted. */
function useSignIn() {
  const router = useRouter()
  const { next = '/people' } = useSearch({ from: '/sign-in' })
  return useWrite((body: object) => requestConsole<Session>('POST', 'session', body), {
    onSuccess: session => {
      queryClient.setQueryData(sessionQuery.queryKey, session)
      router.history.replace(`/console${next}`)
    },
  })
}

/** The page that signs a person in, by a one-time link, by name and password, by a client's credentials, or at the outside issuer. */
export function SignInPage() {
  const texts = useMessages(messages)
  const passwordTexts = useMessages(passwordMessages)
  const [code] = useState(takeSignInCode)
  const [isProgram, setProgram] = useState(false)
  const { mutate: signIn, error, isPending } = useSignIn()
  const hasSentCode = useRef(false)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the code of the link is sent once, when the page opens
  useEffect(() => {
    document.title = `${texts.signIn} · kith`
    if (code === null || hasSentCode.current) return
    hasSentCode.current = true
    signIn({ code })
  }, [])
  if (code !== null && !error) return <Loading />
  return (
    <main className={styles.main}>
      <div className={styles.card}>
        <h1 className={styles.title}>
          <img src="/console/icon.svg" alt="" width="32" height="32" /> kith
        </h1>
        <SignInFault error={error} way={code !== null ? 'code' : isProgram ? 'client' : 'account'} />
        <IssuerLink />
        {isProgram ? (
          <CredentialsForm onSubmit={signIn} isPending={isPending} />
        ) : (
          <AccountForm onSubmit={signIn} isPending={isPending} />
        )}
        <Button look="quiet" onPress={() => setProgram(!isProgram)}>
          {isProgram ? passwordTexts.withAccount : passwordTexts.withClient}
        </Button>
        <p className={styles.advice}>
          {texts.linkAdvice} <code>npx kith console</code>
        </p>
      </div>
    </main>
  )
}

/** Why a sign-in failed: here, or at the outside issuer, which leads back with a word of kith's list in the address. */
function SignInFault({ error, way }: { error: unknown; way: 'code' | 'client' | 'account' }) {
  const texts = useMessages(messages)
  const { noAccount } = useMessages(passwordMessages)
  const { error: word } = useSearch({ from: '/sign-in' })
  if (!error) {
    if (word === undefined) return null
    const faults: Record<string, string> = texts.issuerFaults
    return <Notice kind="error" title={Object.hasOwn(faults, word) ? faults[word]! : texts.issuerFaults.failed} />
  }
  if (!(error instanceof SessionError && error.status === 401)) return <Problem error={error} />
  if (way !== 'code') return <Notice kind="error" title={way === 'client' ? texts.wrongCredentials : noAccount} />
  return (
    <Notice kind="error" title={texts.codeRefused}>
      <p>{texts.codeRefusedAdvice}</p>
      <code>npx kith console</code>
    </Notice>
  )
}

/** The link to the outside issuer, if the service has one. */
function IssuerLink() {
  const texts = useMessages(messages)
  const { data: methods } = useQuery({
    queryKey: ['sign-in-methods'],
    queryFn: () => requestConsole<SignInMethods>('GET', 'sign-in-methods'),
  })
  if (!methods?.issuer) return null
  return (
    <a className={styles.issuer} href={methods.issuer.start_url}>
      {texts.signInWith(methods.issuer.name)}
    </a>
  )
}

/** The organization that somebody signed in to with this browser before. */
const organizationKey = 'kith.organization'

type FormProps = { onSubmit(credentials: object): void; isPending: boolean }

function AccountForm({ onSubmit, isPending }: FormProps) {
  const texts = useMessages(messages)
  const passwordTexts = useMessages(passwordMessages)
  const [credentials, setCredentials] = useState(() => ({
    organization: localStorage.getItem(organizationKey) ?? 'default',
    name: '',
    password: '',
  }))
  const submit = () => {
    localStorage.setItem(organizationKey, credentials.organization)
    onSubmit(credentials)
  }
  return (
    <Form
      onSubmit={submit}
      write={{ error: undefined, isPending }}
      submit={isPending ? `${texts.signingIn}…` : texts.signIn}
    >
      <TextField
        label={texts.name}
        autoComplete="username"
        isRequired
        value={credentials.name}
        onChange={name => setCredentials({ ...credentials, name })}
      />
      <TextField
        label={passwordTexts.password}
        type="password"
        autoComplete="current-password"
        isRequired
        value={credentials.password}
        onChange={password => setCredentials({ ...credentials, password })}
      />
      <TextField
        label={passwordTexts.organization}
        autoComplete="organization"
        isRequired
        value={credentials.organization}
        onChange={organization => setCredentials({ ...credentials, organization })}
      />
    </Form>
  )
}

function CredentialsForm({ onSubmit, isPending }: FormProps) {
  const texts = useMessages(messages)
  const [credentials, setCredentials] = useState({ client_id: '', client_secret: '' })
  return (
    <Form
      onSubmit={() => onSubmit(credentials)}
      write={{ error: undefined, isPending }}
      submit={isPending ? `${texts.signingIn}…` : texts.signIn}
    >
      <TextField
        label={texts.clientId}
        help={texts.clientHelp}
        autoComplete="username"
        isRequired
        value={credentials.client_id}
        onChange={client_id => setCredentials({ ...credentials, client_id })}
      />
      <TextField
        label={texts.clientSecret}
        type="password"
        autoComplete="current-password"
        isRequired
        value={credentials.client_secret}
        onChange={client_secret => setCredentials({ ...credentials, client_secret })}
      />
    </Form>
  )
}
