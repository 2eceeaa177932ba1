import type { RetentionRule } from '@kith/client'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { EntityLink } from '../entity/entity-link.tsx'
import { DialogButton } from '../ui/dialog.tsx'
import { Loaded } from '../ui/loaded.tsx'
import { Badge, EmptyState, Page, Section } from '../ui/page.tsx'
import { PagedList } from '../ui/paged-list.tsx'
import { numberCell, numberHeader, Table } from '../ui/table.tsx'
import { messages } from './messages.ts'
import { holdsQuery, rulesQuery } from './queries.ts'
import { RuleForm } from './rule-form.tsx'
import { UnusedForm } from './unused-form.tsx'

/** The page of the retention rules and the legal holds. */
export function LifetimesPage() {
  const texts = useMessages(messages)
  const mayDeclare = useScope('schema:write')
  const rules = useQuery(rulesQuery)
  return (
    <Page
      title={texts.lifetimes}
      subtitle={texts.subtitle}
      actions={
        <>
          {mayDeclare && <DialogButton dialog={close => <UnusedForm onClose={close} />}>{texts.unused}</DialogButton>}
          <DialogButton look="primary" dialog={close => <RuleForm rule={null} onClose={close} />}>
            {texts.create}
          </DialogButton>
        </>
      }
    >
      <Section title={texts.rules}>
        <Loaded query={rules} none={<EmptyState title={texts.none}>{texts.noneAdvice}</EmptyState>}>
          {rules => <RuleTable rules={rules} />}
        </Loaded>
      </Section>
      <Holds />
    </Page>
  )
}

/** Whether a rule is active, or has paused itself. */
export function RuleState({ rule: { active, paused } }: { rule: RetentionRule }) {
  const texts = useMessages(messages)
  if (active) return <Badge kind="positive">{texts.stateActive}</Badge>
  return paused ? <Badge kind="negative">{texts.statePaused}</Badge> : <Badge>{texts.stateOff}</Badge>
}

function RuleTable({ rules }: { rules: RetentionRule[] }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const headers = [texts.key, texts.state, texts.segment, numberHeader(texts.afterDays), texts.action, texts.today]
  return (
    <Table label={texts.rules} headers={headers}>
      {rules.map(rule => (
        <tr key={rule.id}>
          <th scope="row">
            <Link to="/lifetimes/$ruleId" params={{ ruleId: String(rule.id) }}>
              {rule.key}
            </Link>
          </th>
          <td>
            <RuleState rule={rule} />
          </td>
          <td>{rule.segment ?? texts.noSegment}</td>
          <td className={numberCell}>{formats.number(rule.after_days)}</td>
          <td>{texts[rule.action]}</td>
          <td>{texts.todayFacts(formats.number(rule.today.told), formats.number(rule.today.done))}</td>
        </tr>
      ))}
    </Table>
  )
}

function Holds() {
  const texts = useMessages(messages)
  const holds = useInfiniteQuery(holdsQuery)
  const formats = useFormats()
  return (
    <Section title={texts.holds}>
      <PagedList query={holds} none={<EmptyState title={texts.holdsNone} />} more={texts.showMore}>
        {rows => (
          <Table label={texts.holds} headers={[texts.person, texts.reason, texts.until, texts.heldBy]}>
            {rows.map(({ id, people, reason, until, actor }) => (
              <tr key={id}>
                <th scope="row">
                  {people.map(person => (
                    <div key={person.id}>
                      <EntityLink owner="people" id={person.id} externalId={person.external_id} />
                    </div>
                  ))}
                </th>
                <td>{reason}</td>
                <td>{until === null ? texts.forever : formats.exactTime(until)}</td>
                <td>{actor}</td>
              </tr>
            ))}
          </Table>
        )}
      </PagedList>
    </Section>
  )
}
