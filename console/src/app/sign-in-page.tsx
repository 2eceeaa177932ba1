import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useRouter, useSearch } from '@tanstack/react-router'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { Notice, Problem } from '../ui/notice.tsx'
import { Loading } from '../ui/page.tsx'
import { useMessages } from './language.tsx'
import { messages } from './messages.ts'
import { requestConsole, type Session, SessionError, sessionQuery } from './session.tsx'
import styles from './sign-in-page.module.css'

type SignInMethods = { client_credentials: boolean; issuer: { name: string; start_url: string } | null }

/** The page that signs a person in, by a one-time link, by a client's credentials, or at the outside issuer. */
export function SignInPage() {
  const texts = useMessages(messages)
  const router = useRouter()
  const queryClient = useQueryClient()
  const [code] = useState(() => new URLSearchParams(location.hash.slice(1)).get('code'))
  const [credentials, setCredentials] = useState({ client_id: '', client_secret: '' })
  const [error, setError] = useState<unknown>()
  const [isPending, setPending] = useState(code !== null)
  const { data: methods } = useQuery({
    queryKey: ['sign-in-methods'],
    queryFn: () => requestConsole<SignInMethods>('GET', 'sign-in-methods'),
  })
  const hasSentCode = useRef(false)
  const { next = '/people', error: issuerError } = useSearch({ from: '/sign-in' })

  const signIn = async (body: object) => {
    setPending(true)
    setError(undefined)
    try {
      const session = await requestConsole<Session>('POST', 'session', body)
      queryClient.setQueryData(sessionQuery.queryKey, session)
      router.history.replace(`/console${next}`)
    } catch (error) {
      setError(error)
      setPending(false)
    }
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: the code of the link is sent once, when the page opens
  useEffect(() => {
    document.title = `${texts.signIn} · kith`
    if (code === null || hasSentCode.current) return
    hasSentCode.current = true
    // The code is taken out of the address, so that it stays in no history.
    history.replaceState(history.state, '', location.pathname + location.search)
    signIn({ code })
  }, [])
  const submit = (event: FormEvent) => {
    event.preventDefault()
    signIn(credentials)
  }
  if (isPending && code !== null && error === undefined) return <Loading />
  const isRefused = error instanceof SessionError && error.status === 401
  return (
    <main className={styles.main!}>
      <div className={styles.card!}>
        <h1 className={styles.title!}>
          <img src="/console/icon.svg" alt="" width="32" height="32" /> kith
        </h1>
        {issuerError !== undefined && <Notice kind="error" title={texts.issuerFailed} />}
        {isRefused && code !== null && (
          <Notice kind="error" title={texts.codeRefused}>
            <p>{texts.codeRefusedAdvice}</p>
            <code>npm run -s kith -- console</code>
          </Notice>
        )}
        {isRefused && code === null && <Notice kind="error" title={texts.wrongCredentials} />}
        {error !== undefined && !isRefused && <Problem error={error} />}
        {methods?.issuer && (
          <a className={styles.issuer!} href={methods.issuer.start_url}>
            {texts.signInWith(methods.issuer.name)}
          </a>
        )}
        <form className={styles.form!} onSubmit={submit}>
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
          <Button type="submit" look="primary" isPending={isPending}>
            {isPending ? `${texts.signingIn}…` : texts.signIn}
          </Button>
        </form>
        <p className={styles.advice!}>
          {texts.linkAdvice} <code>npm run -s kith -- console</code>
        </p>
      </div>
    </main>
  )
}
