import { useQuery } from '@tanstack/react-query'
import { useRouter } from '@tanstack/react-router'
import { useState } from 'react'
import { TextField } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { Loading, Notice, Problem, useTitle } from '../ui/page.tsx'
import { useWrite } from './client.ts'
import { useMessages } from './language.tsx'
import { messages } from './messages.ts'
import { isRepeated, NewPasswordFields, noPassword } from './new-password.tsx'
import { queryClient } from './query-client.ts'
import { requestConsole, type Session, SessionError, sessionQuery } from './session.tsx'
import { takeSignInCode } from './sign-in-code.ts'
import { SignInFrame } from './sign-in-frame.tsx'

type Invitation = { name: string; organization: { key: string } }

/** The page where a person accepts an invitation, sets a password and is signed in. */
export function InvitationPage() {
  const texts = useMessages(messages)
  const [code] = useState(() => takeSignInCode() ?? '')
  const invitation = useQuery({
    queryKey: ['invitation', code],
    queryFn: () => requestConsole<Invitation>('POST', 'invitation', { code }),
    staleTime: Number.POSITIVE_INFINITY,
  })
  const title = invitation.data ? texts.welcome(invitation.data.name) : 'kith'
  useTitle(title)
  if (invitation.isPending) return <Loading />
  return (
    <SignInFrame title={title}>
      {invitation.data ? (
        <Acceptance code={code} invitation={invitation.data} />
      ) : (
        <InvitationFault error={invitation.error} onRetry={() => invitation.refetch()} />
      )}
    </SignInFrame>
  )
}

function Acceptance({ code, invitation: { name, organization } }: { code: string; invitation: Invitation }) {
  const texts = useMessages(messages)
  const router = useRouter()
  const [chosen, setChosen] = useState(noPassword)
  const accept = useWrite((password: string) => requestConsole<Session>('POST', 'invitation', { code, password }), {
    onSuccess: session => {
      // The cached data belong to the previous session.
      queryClient.clear()
      queryClient.setQueryData(sessionQuery.queryKey, session)
      router.history.replace('/console/')
    },
  })
  if (accept.error instanceof SessionError && accept.error.status === 401)
    return <InvitationFault error={accept.error} />
  return (
    <Form
      onSubmit={() => accept.mutate(chosen.password)}
      write={accept}
      submit={texts.accept}
      isDisabled={!isRepeated(chosen)}
    >
      <p className="small">{texts.invitationAdvice(organization.key)}</p>
      <TextField label={texts.name} autoComplete="username" isReadOnly value={name} />
      <NewPasswordFields name="/password" label={texts.password} value={chosen} onChange={setChosen} />
    </Form>
  )
}

function InvitationFault({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const texts = useMessages(messages)
  if (!(error instanceof SessionError && error.status === 401))
    return <Problem error={error} {...(onRetry && { onRetry })} />
  return (
    <Notice kind="error" title={texts.invitationRefused}>
      <p>{texts.invitationRefusedAdvice}</p>
    </Notice>
  )
}
