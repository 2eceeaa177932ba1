import { useQuery } from '@tanstack/react-query'
import type { client } from '../app/client.ts'
import { useFormats, useLanguage, useMessages } from '../app/language.tsx'
import { Button, LinkButton } from '../ui/button.tsx'
import { CopyField } from '../ui/copy-field.tsx'
import { Loaded } from '../ui/loaded.tsx'
import { Badge, Notice, Section } from '../ui/page.tsx'
import { translatedFinding } from './doctor-sentences.ts'
import { messages } from './messages.ts'
import styles from './operations.module.css'
import { doctorQuery } from './queries.ts'

type Report = Awaited<ReturnType<typeof client.operations.doctor>>
type Finding = Report['findings'][number]

const kinds = { ok: 'positive', warning: 'caution', wrong: 'negative' } as const

/** The findings of `kith doctor` with their advice, the worst first. */
export function DoctorSection() {
  const texts = useMessages(messages)
  const doctor = useQuery(doctorQuery)
  return (
    <Section
      title={texts.doctor}
      actions={
        <Button isPending={doctor.isFetching} onPress={() => doctor.refetch()}>
          {texts.checkAgain}
        </Button>
      }
    >
      <Loaded query={doctor}>{report => <ReportParts report={report} />}</Loaded>
    </Section>
  )
}

function ReportParts({ report: { checked_at, findings, last_backup_at } }: { report: Report }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { wrong = [], warning = [], ok = [] } = Object.groupBy(findings, ({ verdict }) => verdict)
  const counts = [
    ...(wrong.length > 0 ? [texts.wrongCount(wrong.length)] : []),
    ...(warning.length > 0 ? [texts.warningCount(warning.length)] : []),
  ]
  return (
    <>
      <Notice
        kind={wrong.length > 0 ? 'error' : warning.length > 0 ? 'caution' : 'success'}
        title={counts.length > 0 ? counts.join(' ') : texts.healthy}
      >
        <p>{texts.checked(formats.relative(checked_at))}</p>
      </Notice>
      <Findings findings={[...wrong, ...warning]} />
      <Backup at={last_backup_at} />
      {ok.length > 0 && (
        <details className={styles.details}>
          <summary>{texts.okCount(ok.length)}</summary>
          <Findings findings={ok} />
        </details>
      )}
    </>
  )
}

/** The age of the last backup, and the command that makes one. The service writes no files for a backup, so the page cannot start it. */
function Backup({ at }: { at: string | null }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  return (
    <div className="column gap-2">
      <h3>{texts.backup}</h3>
      <p>{at === null ? texts.noBackup : texts.lastBackup(formats.relative(at), formats.dateTime(at))}</p>
      <p>{texts.backupAdvice}</p>
      <CopyField label={texts.backupNow} text={backupCommand(new Date())} />
    </div>
  )
}

function Findings({ findings }: { findings: Finding[] }) {
  if (findings.length === 0) return null
  return (
    <ul className="column">
      {findings.map(finding => (
        <FindingItem key={`${finding.check} ${finding.message}`} finding={finding} />
      ))}
    </ul>
  )
}

const timeForm = /\d{4}-\d\d-\d\dT[\d:.]+Z/g

function FindingItem({ finding: { check, verdict, message, advice } }: { finding: Finding }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { language } = useLanguage()
  const said = (sentence: string) =>
    (translatedFinding(language, sentence) ?? sentence).replaceAll(timeForm, at => formats.dateTime(at))
  const names: Record<string, string> = texts.checks
  const page = advice === null ? undefined : pageOf(check)
  const command = advice === null || check === 'backup' ? undefined : commandOf(advice)
  return (
    <li className={styles.finding}>
      <p>
        <Badge kind={kinds[verdict]}>{texts.verdicts[verdict]}</Badge> <strong>{names[check] ?? check}</strong>
      </p>
      <p>{said(message)}</p>
      {advice && <p className="muted">→ {said(advice)}</p>}
      {page && (
        <div>
          <LinkButton {...page.link}>{texts.pages[page.name]}</LinkButton>
        </div>
      )}
      {command && <CopyField label={texts.command} text={command} />}
    </li>
  )
}

/**
 * The pages of the console that fix the findings of a check. Other findings are fixed on the machine of the service.
 */
const pages = {
  webhooks: { name: 'webhooks', link: { to: '/webhooks' } },
  followers: { name: 'webhooks', link: { to: '/webhooks' } },
  indexes: { name: 'schema', link: { to: '/schema' } },
  keys: { name: 'keys', link: { to: '/access', search: { tab: 'keys' } } },
} as const

export const pageOf = (check: string) => (Object.hasOwn(pages, check) ? pages[check as keyof typeof pages] : undefined)

/** The command in an advice, to copy. Undefined if the advice has none that runs unchanged. */
export function commandOf(advice: string): string | undefined {
  const [, command] = /\b[Rr]un (kith (?:doctor|migrate|distribute|keys (?:rotate|rewrap)))\b/.exec(advice) ?? []
  return command
}

/** The command that makes a backup of today. */
export const backupCommand = (now: Date): string => `kith backup kith-${now.toISOString().slice(0, 10)}.backup`
