import type { ReactNode } from 'react'
import { Menu as AriaMenu, MenuItem, MenuTrigger, Popover } from 'react-aria-components'
import { Button } from './button.tsx'
import fieldStyles from './field.module.css'

export type MenuAction = { id: string; label: string; action: () => void; isDisabled?: boolean }

/** A button that opens a list of actions. */
export function Menu({
  label,
  actions,
  children,
}: {
  label: string
  actions: readonly MenuAction[]
  children?: ReactNode
}) {
  return (
    <MenuTrigger>
      <Button aria-label={label}>{children ?? label}</Button>
      <Popover className={fieldStyles.popover}>
        <AriaMenu
          className={fieldStyles.options}
          aria-label={label}
          onAction={key => actions.find(({ id }) => id === key)?.action()}
        >
          {actions.map(({ id, label, isDisabled }) => (
            <MenuItem key={id} id={id} isDisabled={isDisabled ?? false} className={fieldStyles.option}>
              {label}
            </MenuItem>
          ))}
        </AriaMenu>
      </Popover>
    </MenuTrigger>
  )
}
