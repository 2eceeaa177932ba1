import type { ConsentType, Definitions } from '@kith/client'
import { Link } from '@tanstack/react-router'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { messages as entityMessages } from '../entity/messages.ts'
import { LinkButton } from '../ui/button.tsx'
import { EmptyState } from '../ui/page.tsx'
import { Table } from '../ui/table.tsx'
import { Archived } from './definition-page.tsx'
import { messages } from './messages.ts'
import styles from './schema.module.css'

/** The purposes that people are asked for. */
export function ConsentTypesTab({ definitions: { consent_types } }: { definitions: Definitions }) {
  const texts = useMessages(messages)
  const mayWrite = useScope('schema:write')
  return (
    <div className={styles.stack}>
      <div className="row centered">
        <p className="small">{texts.consentTypesHelp}</p>
        {mayWrite && (
          <LinkButton to="/schema/consent-types/$consentTypeId" params={{ consentTypeId: 'new' }} look="primary">
            {texts.newConsentType}
          </LinkButton>
        )}
      </div>
      {consent_types.length === 0 ? (
        <EmptyState title={texts.noConsentTypes} />
      ) : (
        <Table
          label={texts.tabs.consents}
          headers={[texts.name, texts.key, texts.channels, texts.withoutAnswer, texts.texts]}
        >
          {consent_types.map(type => (
            <tr key={type.id}>
              <th scope="row">
                <Link to="/schema/consent-types/$consentTypeId" params={{ consentTypeId: String(type.id) }}>
                  <bdi>{type.name}</bdi>
                </Link>{' '}
                {type.state === 'archived' && <Archived />}
              </th>
              <td>
                <code>{type.key}</code>
              </td>
              <td>
                <Channels type={type} />
              </td>
              <td>{texts[unansweredOf(type)]}</td>
              <td>{type.text_versions}</td>
            </tr>
          ))}
        </Table>
      )}
    </div>
  )
}

/** The state of a person who has not answered. */
export const unansweredOf = (type: Pick<ConsentType, 'mandatory' | 'default_state'>) =>
  type.mandatory ? 'mandatory' : type.default_state ? 'granted' : 'refused'

/** The channels of a purpose, with their special settings. */
export function Channels({ type }: { type: Pick<ConsentType, 'channels'> }) {
  const texts = useMessages(messages)
  const { channels } = useMessages(entityMessages)
  return (
    <ul className={styles.rules}>
      {type.channels.map(({ channel, is_default, double_opt_in }) => (
        <li key={channel}>
          {[
            channels[channel],
            ...(is_default ? [texts.channelDefault] : []),
            ...(double_opt_in ? [texts.doubleOptIn] : []),
          ].join(' · ')}
        </li>
      ))}
    </ul>
  )
}
