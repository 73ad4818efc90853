// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

// Tokens whose logs tell the truth: the controls, and what the others are derived from.

abstract contract Erc20 {
    event Transfer(address indexed from, address indexed to, uint256 value);

    string public name;
    string public symbol;
    uint8 public decimals;
    mapping(address => uint256) internal held;

    constructor(string memory name_, string memory symbol_, uint8 decimals_) {
        (name, symbol, decimals) = (name_, symbol_, decimals_);
    }

    function balanceOf(address holder) public view virtual returns (uint256) {
        return held[holder];
    }

    function mint(address to, uint256 value) external virtual {
        held[to] += value;
        emit Transfer(address(0), to, value);
    }

    function transfer(address to, uint256 value) external virtual returns (bool) {
        held[msg.sender] -= value;
        held[to] += value;
        emit Transfer(msg.sender, to, value);
        return true;
    }

    function burn(uint256 value) external virtual {
        held[msg.sender] -= value;
        emit Transfer(msg.sender, address(0), value);
    }
}

contract Honest20 is Erc20("Honest Token", "HON", 18) {
    /// Gives to `count` addresses, the numbers from `first` on.
    function mintMany(uint256 first, uint256 count, uint256 value) external {
        for (uint256 i = first; i < first + count; i++) {
            held[address(uint160(i))] += value + i;
            emit Transfer(address(0), address(uint160(i)), value + i);
        }
    }
}

/// Honest, but without name, symbol and decimals.
contract Nameless20 {
    event Transfer(address indexed from, address indexed to, uint256 value);

    mapping(address => uint256) public balanceOf;

    function mint(address to, uint256 value) external {
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value;
        emit Transfer(msg.sender, to, value);
        return true;
    }
}

/// As WETH9: deposits and withdrawals have events of their own and no Transfer.
contract Wrapped20 is Erc20("Wrapped Native", "WNAT", 18) {
    event Deposit(address indexed dst, uint256 wad);
    event Withdrawal(address indexed src, uint256 wad);

    function deposit() external payable {
        held[msg.sender] += msg.value;
        emit Deposit(msg.sender, msg.value);
    }

    function withdraw(uint256 wad) external {
        held[msg.sender] -= wad;
        (bool ok, ) = msg.sender.call{value: wad}("");
        require(ok);
        emit Withdrawal(msg.sender, wad);
    }
}

abstract contract Erc721 {
    event Transfer(address indexed from, address indexed to, uint256 indexed tokenId);

    string public name;
    string public symbol;
    mapping(uint256 => address) internal owner;
    mapping(address => uint256) public balanceOf;

    constructor(string memory name_, string memory symbol_) {
        (name, symbol) = (name_, symbol_);
    }

    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == 0x01ffc9a7 || id == 0x80ac58cd;
    }

    function ownerOf(uint256 tokenId) external view returns (address) {
        require(owner[tokenId] != address(0), "no such token");
        return owner[tokenId];
    }

    function mint(address to, uint256 tokenId) external {
        move(to, tokenId);
        emit Transfer(address(0), to, tokenId);
    }

    function transferFrom(address from, address to, uint256 tokenId) external {
        require(owner[tokenId] == from && from == msg.sender);
        move(to, tokenId);
        emit Transfer(from, to, tokenId);
    }

    function burn(uint256 tokenId) external {
        address from = owner[tokenId];
        move(address(0), tokenId);
        emit Transfer(from, address(0), tokenId);
    }

    function move(address to, uint256 tokenId) internal {
        if (owner[tokenId] != address(0)) balanceOf[owner[tokenId]]--;
        if (to != address(0)) balanceOf[to]++;
        owner[tokenId] = to;
    }
}

contract Honest721 is Erc721("Honest Picture", "HPIC") {}

abstract contract Erc1155 {
    event TransferSingle(address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value);
    event TransferBatch(address indexed operator, address indexed from, address indexed to, uint256[] ids, uint256[] values);

    mapping(address => mapping(uint256 => uint256)) internal held;

    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == 0x01ffc9a7 || id == 0xd9b67a26;
    }

    function balanceOf(address holder, uint256 id) external view returns (uint256) {
        return held[holder][id];
    }

    function mint(address to, uint256 id, uint256 value) external {
        held[to][id] += value;
        emit TransferSingle(msg.sender, address(0), to, id, value);
    }

    function give(address to, uint256 id, uint256 value) external {
        held[msg.sender][id] -= value;
        held[to][id] += value;
        emit TransferSingle(msg.sender, msg.sender, to, id, value);
    }

    /// `value` of the IDs `first` and `first + 1`.
    function giveTwo(address to, uint256 first, uint256 value) external {
        (uint256[] memory ids, uint256[] memory values) = (new uint256[](2), new uint256[](2));
        for (uint256 i = 0; i < 2; i++) {
            (ids[i], values[i]) = (first + i, value);
            held[msg.sender][ids[i]] -= value;
            held[to][ids[i]] += value;
        }
        emit TransferBatch(msg.sender, msg.sender, to, ids, values);
    }
}

contract Honest1155 is Erc1155 {}
