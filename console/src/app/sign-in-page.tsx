import { useQuery } from '@tanstack/react-query'
import { useRouter, useSearch } from '@tanstack/react-router'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Button } from '../ui/button.tsx'
import { TextField, useDraft } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { Loading, Notice, Problem, useTitle } from '../ui/page.tsx'
import { useWrite } from './client.ts'
import { useMessages } from './language.tsx'
import { messages } from './messages.ts'
import { queryClient } from './query-client.ts'
import { requestConsole, type Session, SessionError, sessionQuery } from './session.tsx'
import { takeSignInCode } from './sign-in-code.ts'
import { SignInFrame } from './sign-in-frame.tsx'
import styles from './sign-in-page.module.css'

type SignInMethods = { issuer: { name: string; start_url: string } | null }

/** Signs in by a one-time code or by credentials, and then shows the page that the person wanted. */
function useSignIn() {
  const router = useRouter()
  const { next = '/' } = useSearch({ from: '/sign-in' })
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
  const [code] = useState(takeSignInCode)
  const [isProgram, setProgram] = useState(false)
  const { mutate: signIn, error, isPending } = useSignIn()
  const hasSentCode = useRef(false)
  useTitle(texts.signIn)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the code of the link is sent once, when the page opens
  useEffect(() => {
    if (code === null || hasSentCode.current) return
    hasSentCode.current = true
    signIn({ code })
  }, [])
  if (code !== null && !error) return <Loading />
  return (
    <SignInFrame title="kith">
      <SignInFault error={error} way={code !== null ? 'code' : isProgram ? 'client' : 'account'} />
      <IssuerLink />
      {isProgram ? (
        <CredentialsForm onSubmit={signIn} isPending={isPending} />
      ) : (
        <AccountForm onSubmit={signIn} isPending={isPending} />
      )}
      <Button look="quiet" onPress={() => setProgram(!isProgram)}>
        {isProgram ? texts.withAccount : texts.withClient}
      </Button>
      <p className={styles.advice}>
        {texts.linkAdvice} <code>npx kith console</code>
      </p>
    </SignInFrame>
  )
}

/** The reason why a sign-in failed: here, or at the outside issuer, which returns an error code in the address. */
function SignInFault({ error, way }: { error: unknown; way: 'code' | 'client' | 'account' }) {
  const texts = useMessages(messages)
  const { error: word } = useSearch({ from: '/sign-in' })
  if (!error) {
    if (word === undefined) return null
    const faults: Record<string, string> = texts.issuerFaults
    return <Notice kind="error" title={Object.hasOwn(faults, word) ? faults[word]! : texts.issuerFaults.failed} />
  }
  if (!(error instanceof SessionError && error.status === 401)) return <Problem error={error} />
  if (way !== 'code') return <Notice kind="error" title={way === 'client' ? texts.wrongCredentials : texts.noAccount} />
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

/** The organization of the last sign-in with this browser. */
const organizationKey = 'kith.organization'

type CredentialsProps = { onSubmit(credentials: object): void; isPending: boolean }

function AccountForm({ onSubmit, isPending }: CredentialsProps) {
  const texts = useMessages(messages)
  const { draft, field } = useDraft(() => ({
    organization: localStorage.getItem(organizationKey) ?? 'default',
    name: '',
    password: '',
  }))
  const submit = () => {
    localStorage.setItem(organizationKey, draft.organization)
    onSubmit(draft)
  }
  return (
    <SignInForm onSubmit={submit} isPending={isPending}>
      <TextField label={texts.name} autoComplete="username" isRequired {...field('name')} />
      <TextField
        label={texts.password}
        type="password"
        autoComplete="current-password"
        isRequired
        {...field('password')}
      />
      <TextField label={texts.organization} autoComplete="organization" isRequired {...field('organization')} />
    </SignInForm>
  )
}

function CredentialsForm({ onSubmit, isPending }: CredentialsProps) {
  const texts = useMessages(messages)
  const { draft, field } = useDraft({ client_id: '', client_secret: '' })
  return (
    <SignInForm onSubmit={() => onSubmit(draft)} isPending={isPending}>
      <TextField
        label={texts.clientId}
        help={texts.clientHelp}
        autoComplete="username"
        isRequired
        {...field('client_id')}
      />
      <TextField
        label={texts.clientSecret}
        type="password"
        autoComplete="current-password"
        isRequired
        {...field('client_secret')}
      />
    </SignInForm>
  )
}

type SignInFormProps = { onSubmit(): void; isPending: boolean; children: ReactNode }

/** A form that shows its refusal above the fields. */
function SignInForm({ onSubmit, isPending, children }: SignInFormProps) {
  const texts = useMessages(messages)
  return (
    <Form
      onSubmit={onSubmit}
      write={{ error: undefined, isPending }}
      submit={isPending ? `${texts.signingIn}…` : texts.signIn}
    >
      {children}
    </Form>
  )
}
