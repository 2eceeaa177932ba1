import type { ContactDecision, Person } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { ConfirmationLink } from '../consents/confirmation-link.tsx'
import { suppressionMessages } from '../deliverability/suppression-messages.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { Button } from '../ui/button.tsx'
import { CloseAction, Dialog } from '../ui/dialog.tsx'
import { Notice, Problem } from '../ui/notice.tsx'
import { Loading } from '../ui/page.tsx'
import { AnswerForm } from './answer-form.tsx'
import { AnswerList } from './answer-list.tsx'
import { consentMessages } from './consent-messages.ts'
import { decisionQuery, explain } from './decision.ts'
import styles from './person.module.css'
import type { Purpose } from './purpose.ts'

type ConsentDialogProps = {
  person: Person
  purpose: Purpose
  at: string | undefined
  onShow: ((person: Person) => void) | undefined
  onClose: () => void
}

/** Why a person may be written to or not, the answers with their evidence, and a form for a new one. */
export function ConsentDialog({ person, purpose, at, onShow, onClose }: ConsentDialogProps) {
  const texts = useMessages(consentMessages)
  const entityTexts = useMessages(entityMessages)
  const [mayRead, mayWrite] = [useScope('consents:read'), useScope('people:write')]
  const [isRecording, setRecording] = useState(false)
  const { consent_type_id, channel, name, type } = purpose
  const decision = useQuery({ ...decisionQuery(person, purpose, at), enabled: mayRead })
  const mayRecord = mayWrite && onShow !== undefined && type?.mandatory !== true
  return (
    <Dialog
      title={texts.title(name, entityTexts.channels[channel])}
      isOpen
      onClose={onClose}
      size="wide"
      hasDraft={isRecording}
    >
      {!mayRead && <p className={styles.muted}>{texts.needsScope}</p>}
      {decision.data ? (
        <Decision decision={decision.data} purpose={purpose} />
      ) : (
        mayRead &&
        (decision.error ? <Problem error={decision.error} onRetry={() => decision.refetch()} /> : <Loading />)
      )}
      {decision.data?.reasons.some(reason => reason.rule === 'answer' && reason.pending) && at === undefined && (
        <ConfirmationLink personId={person.id} consent_type_id={consent_type_id} channel={channel} />
      )}
      {isRecording && onShow && (
        <AnswerForm person={person} purpose={purpose} onShow={onShow} onClose={() => setRecording(false)} />
      )}
      {mayRead && <AnswerList person={person} purpose={purpose} at={at} />}
      {!isRecording && (
        <CloseAction onClose={onClose}>
          {mayRecord && <Button onPress={() => setRecording(true)}>{texts.record}</Button>}
        </CloseAction>
      )}
    </Dialog>
  )
}

/** The rules that allow or forbid it, in their order. */
function Decision({ decision: { allowed, reasons }, purpose }: { decision: ContactDecision; purpose: Purpose }) {
  const texts = useMessages(consentMessages)
  const suppressionTexts = useMessages(suppressionMessages)
  const formats = useFormats()
  const title = (allowed ? texts.allowed : texts.forbidden)[purpose.channel]
  return (
    <Notice kind={allowed ? 'success' : 'caution'} title={`${title}.`}>
      <p>{texts.because}</p>
      <ol className={styles.reasons}>
        {reasons.map(reason => (
          <li key={reason.rule}>
            {explain(reason, purpose.channel, texts, formats.dateTime, suppressionTexts.reasons)}
          </li>
        ))}
      </ol>
    </Notice>
  )
}
