// Who uses the console, and what the key may do.
import { api, type Role, type Who } from './api'

const ranks: Record<Role, number> = { read: 1, run: 2, deploy: 3, admin: 4 }

class Me {
  who = $state.raw<Who | null>(null)
  async ask() { this.who = await api.whoami() }
  // may reports whether the key has a role. Actions that it may not do are not offered; the server decides.
  may(least: Role): boolean { return this.who !== null && ranks[this.who.role] >= ranks[least] }
}
export const me = new Me()
