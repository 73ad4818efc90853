// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {Erc20, Erc721, Erc1155} from "./Standard.sol";

// Tokens whose balances and owners are not what their logs say.

/// Holders have shares of a pool. A rebase makes the pool larger and logs only what the treasury received.
contract Rebasing20 is Erc20("Rebasing Token", "REB", 18) {
    uint256 public pool;
    uint256 public shares;

    function balanceOf(address holder) public view override returns (uint256) {
        return shares == 0 ? 0 : held[holder] * pool / shares;
    }

    function mint(address to, uint256 value) external override {
        uint256 share = shares == 0 ? value : value * shares / pool;
        (held[to], shares, pool) = (held[to] + share, shares + share, pool + value);
        emit Transfer(address(0), to, value);
    }

    function transfer(address to, uint256 value) external override returns (bool) {
        uint256 share = value * shares / pool;
        held[msg.sender] -= share;
        held[to] += share;
        emit Transfer(msg.sender, to, value);
        return true;
    }

    function rebase(address treasury, uint256 percent) external {
        uint256 before = balanceOf(treasury);
        pool += pool * percent / 100;
        held[treasury] += shares / 1000;
        shares += shares / 1000;
        emit Transfer(address(0), treasury, balanceOf(treasury) - before);
    }
}

/// Each period adds a thousandth of what was there at first, without any change of storage.
contract Growing20 is Erc20("Growing Token", "GROW", 18) {
    uint256 internal immutable start = block.timestamp;
    uint256 internal immutable period;

    constructor(uint256 seconds_) {
        period = seconds_;
    }

    function balanceOf(address holder) public view override returns (uint256) {
        return held[holder] * (1000 + (block.timestamp - start) / period) / 1000;
    }
}

contract Ledger {
    mapping(address => uint256) public balance;

    function set(address holder, uint256 value) external {
        balance[holder] = value;
    }
}

/// Keeps its balances in a ledger, where anybody may change them.
contract Remote20 is Erc20("Remote Token", "REM", 6) {
    Ledger internal immutable ledger;

    constructor(Ledger ledger_) {
        ledger = ledger_;
    }

    function balanceOf(address holder) public view override returns (uint256) {
        return ledger.balance(holder);
    }

    function mint(address to, uint256 value) external override {
        ledger.set(to, balanceOf(to) + value);
        emit Transfer(address(0), to, value);
    }

    function transfer(address to, uint256 value) external override returns (bool) {
        ledger.set(msg.sender, balanceOf(msg.sender) - value);
        ledger.set(to, balanceOf(to) + value);
        emit Transfer(msg.sender, to, value);
        return true;
    }
}

/// Takes from one holder while its log names another one, for whom nothing changes.
contract WrongPayer20 is Erc20("Wrong Payer", "WPAY", 18) {
    function take(address from, address named, uint256 value) external {
        held[from] -= value;
        held[address(this)] += value;
        emit Transfer(named, named, value);
    }
}

/// One percent of each transfer goes to a collector; the log says that everything arrived.
contract SilentFee20 is Erc20("Silent Fee", "FEE", 18) {
    function transfer(address to, uint256 value) external override returns (bool) {
        held[msg.sender] -= value;
        held[to] += value - value / 100;
        held[address(this)] += value / 100;
        emit Transfer(msg.sender, to, value);
        return true;
    }
}

contract SilentMint20 is Erc20("Silent Mint", "SMINT", 18) {
    function mintSilently(address to, uint256 value) external {
        held[to] += value;
    }
}

/// All balances times a factor that is changed without a log.
contract Factor20 is Erc20("Factor Token", "FACT", 18) {
    uint256 public factor = 1;

    function balanceOf(address holder) public view override returns (uint256) {
        return held[holder] * factor;
    }

    function setFactor(uint256 factor_) external {
        factor = factor_;
    }
}

/// What is burned is credited to the zero address.
contract ZeroCredit20 is Erc20("Zero Credit", "ZERO", 18) {
    function burn(uint256 value) external override {
        held[msg.sender] -= value;
        held[address(0)] += value;
        emit Transfer(msg.sender, address(0), value);
    }
}

/// balanceOf reverts from some block on.
contract Expiring20 is Erc20("Expiring Token", "EXP", 18) {
    uint256 internal immutable end;

    constructor(uint256 blocks) {
        end = block.number + blocks;
    }

    function balanceOf(address holder) public view override returns (uint256) {
        require(block.number < end, "expired");
        return held[holder];
    }
}

contract Silent721 is Erc721("Silent Picture", "SPIC") {
    function moveSilently(address to, uint256 tokenId) external {
        move(to, tokenId);
    }
}

contract WrongOwner721 is Erc721("Wrong Owner", "WOWN") {
    function moveWrongly(address to, address named, uint256 tokenId) external {
        address from = owner[tokenId];
        move(to, tokenId);
        emit Transfer(from, named, tokenId);
    }
}

contract Silent1155 is Erc1155 {
    function setSilently(address holder, uint256 id, uint256 value) external {
        held[holder][id] = value;
    }
}
