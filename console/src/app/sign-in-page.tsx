import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useRouter, useSearch } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { TextField } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { Notice, Problem } from '../ui/notice.tsx'
import { Loading } from '../ui/page.tsx'
import { useMessages } from './language.tsx'
import { messages } from './messages.ts'
import { requestConsole, type Session, SessionError, sessionQuery } from './session.tsx'
import { takeSignInCode } from './sign-in-code.ts'
import styles from './sign-in-page.module.css'
import { useWrite } from './write.ts'

type SignInMethods = { client_credentials: boolean; issuer: { name: string; start_url: string } | null }

/** Signs in by a one-time code or by credentials, and then shows the page that the person wanted. */
function useSignIn() {
  const router = useRouter()
  const queryClient = useQueryClient()
  const { next = '/people' } = useSearch({ from: '/sign-in' })
  return useWrite((body: object) => requestConsole<Session>('POST', 'session', body), {
    onSuccess: session => {
      queryClient.setQueryData(sessionQuery.queryKey, session)
      router.history.replace(`/console${next}`)
    },
  })
}

/** The page that signs a person in, by a one-time link, by a client's credentials, or at the outside issuer. */
export function SignInPage() {
  const texts = useMessages(messages)
  const [code] = useState(takeSignInCode)
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
        <SignInFault error={error} isByLink={code !== null} />
        <IssuerLink />
        <CredentialsForm onSubmit={signIn} isPending={isPending} />
        <p className={styles.advice}>
          {texts.linkAdvice} <code>npx kith console</code>
        </p>
      </div>
    </main>
  )
}

/** Why a sign-in failed: here, or at the outside issuer, which leads back with a word of kith's list in the address. */
function SignInFault({ error, isByLink }: { error: unknown; isByLink: boolean }) {
  const texts = useMessages(messages)
  const { error: word } = useSearch({ from: '/sign-in' })
  if (!error) {
    if (word === undefined) return null
    const faults: Record<string, string> = texts.issuerFaults
    return <Notice kind="error" title={Object.hasOwn(faults, word) ? faults[word]! : texts.issuerFaults.failed} />
  }
  if (!(error instanceof SessionError && error.status === 401)) return <Problem error={error} />
  if (!isByLink) return <Notice kind="error" title={texts.wrongCredentials} />
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

function CredentialsForm({ onSubmit, isPending }: { onSubmit(credentials: object): void; isPending: boolean }) {
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
