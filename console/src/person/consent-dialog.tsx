import type { ContactDecision, Person, RecordedAnswer } from '@kith/client'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, pagedQuery, useWrite } from '../app/client.ts'
import { isWhole, mayUse } from '../app/field-rights.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { ConfirmationLink } from '../consents/confirmation-link.tsx'
import { suppressionMessages } from '../deliverability/suppression-messages.ts'
import { answerWord, messages as entityMessages } from '../entity/messages.ts'
import { LongText } from '../entity/value.tsx'
import { Button } from '../ui/button.tsx'
import { CloseAction, Dialog } from '../ui/dialog.tsx'
import { Badge, Facts, Loading, Notice, Problem } from '../ui/page.tsx'
import { MoreButton } from '../ui/paged-list.tsx'
import { saveBlob } from '../ui/save-blob.ts'
import { AnswerForm } from './answer-form.tsx'
import { consentMessages } from './consent-messages.ts'
import { decisionQuery, explain, type Purpose } from './decision.ts'
import styles from './person.module.css'

type ConsentDialogProps = {
  person: Person
  purpose: Purpose
  at: string | undefined
  onShow: ((person: Person) => void) | undefined
  onClose: () => void
}

/** The reasons why a person may be contacted or not, the answers with their evidence, and a form for a new answer. */
export function ConsentDialog({ person, purpose, at, onShow, onClose }: ConsentDialogProps) {
  const texts = useMessages(consentMessages)
  const entityTexts = useMessages(entityMessages)
  const [mayRead, mayWrite] = [useScope('consents:read'), useScope('people:write')]
  const [isRecording, setRecording] = useState(false)
  const { consent_type_id, channel, name, type } = purpose
  const decision = useQuery({ ...decisionQuery(person, purpose, at), enabled: mayRead })
  const mayRecord =
    mayWrite && mayUse('write', 'people', 'consents') && onShow !== undefined && type?.mandatory !== true
  return (
    <Dialog title={`${name} · ${entityTexts.channels[channel]}`} onClose={onClose} size="wide" hasDraft={isRecording}>
      {!mayRead && <p className="muted">{texts.needsScope}</p>}
      {mayRead && decision.isPending && <Loading />}
      {decision.error && !decision.data && <Problem error={decision.error} onRetry={() => decision.refetch()} />}
      {decision.data && <Decision decision={decision.data} purpose={purpose} />}
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

/** The rules that allow or forbid contact, in their order. */
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

type AnswerListProps = { person: Person; purpose: Purpose; at: string | undefined }

const pageSize = 20

/** Each answer of the person to a purpose on a channel, newest first, with its evidence. */
export function AnswerList({ person, purpose, at }: AnswerListProps) {
  const texts = useMessages(consentMessages)
  const { consent_type_id, channel } = purpose
  // With a past moment, the page reads the current history and leaves out later answers.
  const queryKey = ['consents', 'history', person.id, consent_type_id, channel, at ?? person.version]
  const query = useInfiniteQuery(
    pagedQuery(queryKey, after =>
      client.consents.history({ id: person.id }, { consent_type_id, channel, size: pageSize, ...after }).page(),
    ),
  )
  const { data, error, refetch, hasNextPage } = query
  if (!data) return error ? <Problem error={error} onRetry={() => refetch()} /> : <Loading />
  const answers = data.pages
    .flatMap(({ items }) => items)
    .filter(answer => at === undefined || Date.parse(answer.at) <= Date.parse(at))
  const standing = answers.find(({ superseded }) => !superseded)
  return (
    <section className="column" aria-label={texts.evidence}>
      <h3>{texts.evidence}</h3>
      {answers.length === 0 && !hasNextPage && <p className="muted">{texts.noAnswers}</p>}
      <ol className="column">
        {answers.map(answer => (
          <Answer
            key={`${answer.sequence} ${answer.merged_person_id ?? ''}`}
            answer={answer}
            personId={person.id}
            isStanding={answer === standing}
          />
        ))}
      </ol>
      <MoreButton query={query}>{texts.showOlder}</MoreButton>
    </section>
  )
}

function Answer({ answer, personId, isStanding }: { answer: RecordedAnswer; personId: string; isStanding: boolean }) {
  const texts = useMessages(consentMessages)
  const entityTexts = useMessages(entityMessages)
  const formats = useFormats()
  const { state, pending, superseded, merged_person_id, text_version, consent_type_id, channel, sequence } = answer
  const owner = merged_person_id ?? personId
  const receipt = useWrite(async () => {
    const content = await client.consents.receipt({ id: owner }, { consent_type_id, channel }, { sequence })
    const file = new Blob([`${JSON.stringify(content, null, 2)}\n`], { type: 'application/json' })
    saveBlob(file, `receipt-${sequence}.json`)
  })
  const text = (value: string | null) => value && <LongText text={value} />
  return (
    <li className={styles.answer}>
      <div className="row centered">
        <Badge kind={pending ? 'caution' : state ? 'positive' : 'negative'}>
          {entityTexts.answers[answerWord(answer)]}
        </Badge>
        {isStanding && <Badge kind="accent">{texts.stands}</Badge>}
        {superseded && <Badge>{texts.superseded}</Badge>}
        {merged_person_id && <span className="small">{texts.ofMerged}</span>}
      </div>
      <Facts
        facts={[
          [texts.answered, formats.exactTime(answer.collected_at ?? answer.at)],
          [texts.recorded, texts.recordedBy(formats.exactTime(answer.at), answer.actor)],
          [texts.method, answer.method && entityTexts.methods[answer.method]],
          [texts.source, text(answer.source)],
          [
            texts.text,
            text_version !== null && (
              <TextOfVersion key="text" consentTypeId={consent_type_id} version={text_version} />
            ),
          ],
          [texts.ip, text(answer.ip)],
          [texts.user_agent, text(answer.user_agent)],
          [texts.reference, text(answer.reference)],
          [texts.consent_string, text(answer.consent_string)],
        ]}
      />
      {receipt.error && <Problem error={receipt.error} />}
      {isWhole('people') && (
        <div>
          <Button onPress={() => receipt.mutate()} isPending={receipt.isPending}>
            {texts.receipt}
          </Button>
        </div>
      )}
    </li>
  )
}

/** The version of the text that an answer names, and on demand the text itself. */
function TextOfVersion({ consentTypeId, version }: { consentTypeId: number; version: number }) {
  const texts = useMessages(consentMessages)
  const mayRead = useScope('schema:read')
  const [isOpen, setOpen] = useState(false)
  const { data, error, refetch } = useQuery({
    queryKey: ['consents', 'text', consentTypeId, version],
    queryFn: async ({ signal }) =>
      (await client.schema.consentTypes.texts(consentTypeId, { after: String(version - 1), size: 1, signal }).page())
        .items[0] ?? null,
    enabled: isOpen,
    // A text never changes.
    staleTime: Number.POSITIVE_INFINITY,
  })
  return (
    <div className="column">
      <div className="row centered">
        <span>{texts.version(version)}</span>
        {mayRead && (
          <Button look="quiet" aria-expanded={isOpen} onPress={() => setOpen(!isOpen)}>
            {isOpen ? texts.hideText : texts.showText}
          </Button>
        )}
      </div>
      {isOpen && error && <Problem error={error} onRetry={() => refetch()} />}
      {isOpen && data && (
        <blockquote className={styles.quote} lang={data.language}>
          {data.text}
        </blockquote>
      )}
    </div>
  )
}
