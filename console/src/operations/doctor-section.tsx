import { useQuery } from '@tanstack/react-query'
import type { client } from '../app/client.ts'
import { useFormats, useLanguage, useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Notice, Problem } from '../ui/notice.tsx'
import { Badge, Loading, Section } from '../ui/page.tsx'
import { translatedFinding } from './doctor-sentences.ts'
import { messages } from './messages.ts'
import styles from './operations.module.css'
import { doctorQuery } from './queries.ts'

const kinds = { ok: 'positive', warning: 'caution', wrong: 'negative' } as const
const order = { wrong: 0, warning: 1, ok: 2 } as const

/** The findings of `kith doctor`, the worst first, each with what to do. */
export function DoctorSection() {
  const texts = useMessages(messages)
  const formats = useFormats()
  const doctor = useQuery(doctorQuery)
  const findings = (doctor.data?.findings ?? []).toSorted((a, b) => order[a.verdict] - order[b.verdict])
  const bad = findings.filter(({ verdict }) => verdict !== 'ok')
  const ok = findings.filter(({ verdict }) => verdict === 'ok')
  return (
    <Section
      title={texts.doctor}
      actions={
        <Button isPending={doctor.isFetching} onPress={() => doctor.refetch()}>
          {texts.checkAgain}
        </Button>
      }
    >
      {doctor.isPending && <Loading />}
      {doctor.error && <Problem error={doctor.error} onRetry={() => doctor.refetch()} />}
      {doctor.data && (
        <>
          <Notice
            kind={doctor.data.healthy ? 'success' : 'error'}
            title={doctor.data.healthy ? texts.healthy : texts.unhealthy}
          >
            <p>{texts.checked(formats.relative(doctor.data.checked_at))}</p>
          </Notice>
          <Findings findings={bad} />
          {ok.length > 0 && (
            <details className={styles.details}>
              <summary>{texts.okCount(ok.length)}</summary>
              <Findings findings={ok} />
            </details>
          )}
        </>
      )}
    </Section>
  )
}

type Finding = Awaited<ReturnType<typeof client.operations.doctor>>['findings'][number]

function Findings({ findings }: { findings: Finding[] }) {
  const texts = useMessages(messages)
  const { language } = useLanguage()
  const said = (sentence: string) => translatedFinding(language, sentence) ?? sentence
  if (findings.length === 0) return null
  return (
    <ul className={styles.findings}>
      {findings.map(({ check, verdict, message, advice }) => (
        <li key={`${check} ${message}`}>
          <p>
            <Badge kind={kinds[verdict]}>{texts.verdicts[verdict]}</Badge> <strong>{check}</strong>
          </p>
          <p>{said(message)}</p>
          {advice && <p className={styles.advice}>→ {said(advice)}</p>}
        </li>
      ))}
    </ul>
  )
}
